;; Compiles a program: guile compile.scm SOURCE OUTPUT. Debian has Guile's compiler in the run-time package
;; but not the `guild` command.
(use-modules (system base compile))
(let ((args (cdr (command-line))))
  (compile-file (car args) #:output-file (cadr args) #:optimization-level 2))
