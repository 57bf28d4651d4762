; An interpreter of Scheme in Scheme, which runs programs of its own: closures, recursion, state.
; Environments are lists of frames, a frame is a pair of names and values.

(define (bind names values environment) (cons (cons names values) environment))

; The list that begins with the value.
(define (find name environment)
  (if (null? environment)
      (error "unbound:" name)
      (let next ((names (caar environment)) (values (cdar environment)))
        (cond ((null? names) (find name (cdr environment)))
              ((eq? (car names) name) values)
              (else (next (cdr names) (cdr values)))))))

(define (define! name value environment)
  (let ((frame (car environment)))
    (set-car! frame (cons name (car frame)))
    (set-cdr! frame (cons value (cdr frame)))))

; A procedure of the interpreted language is a procedure of this one: of a list of arguments.
(define (evaluate e environment)
  (cond ((symbol? e) (car (find e environment)))
        ((not (pair? e)) e)
        (else
         (case (car e)
           ((quote) (cadr e))
           ((if) (if (evaluate (cadr e) environment)
                     (evaluate (caddr e) environment)
                     (evaluate (cadddr e) environment)))
           ((lambda) (make-procedure (cadr e) (cddr e) environment))
           ((define) (define! (cadr e) (evaluate (caddr e) environment) environment))
           ((set!) (set-car! (find (cadr e) environment) (evaluate (caddr e) environment)))
           ((begin) (evaluate-all (cdr e) environment))
           ((let) (evaluate-all
                   (cddr e)
                   (bind (map car (cadr e))
                         (map (lambda (binding) (evaluate (cadr binding) environment)) (cadr e))
                         environment)))
           (else
            ((evaluate (car e) environment)
             (map (lambda (argument) (evaluate argument environment)) (cdr e))))))))

(define (evaluate-all body environment)
  (if (null? (cdr body))
      (evaluate (car body) environment)
      (begin
        (evaluate (car body) environment)
        (evaluate-all (cdr body) environment))))

(define (make-procedure names body environment)
  (lambda (arguments) (evaluate-all body (bind names arguments environment))))

(define (primitive f) (lambda (arguments) (apply f arguments)))

(define (global-environment)
  (bind '(+ - * < = cons car cdr null? remainder display)
        (map primitive (list + - * < = cons car cdr null? remainder
                             (lambda (x) (display x) (newline))))
        '()))

(define program
  '((define fib (lambda (n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2))))))
    (display (fib 15))
    (define even (lambda (n) (if (= n 0) 'even (odd (- n 1)))))
    (define odd (lambda (n) (if (= n 0) 'odd (even (- n 1)))))
    (display (even 2001))
    (define map (lambda (f items) (if (null? items) items (cons (f (car items)) (map f (cdr items))))))
    (define from (lambda (a b) (if (< a b) (cons a (from (+ a 1) b)) '())))
    (display (map (lambda (x) (* x x)) (from 0 10)))
    (define make-account
      (lambda (balance) (lambda (amount) (begin (set! balance (+ balance amount)) balance))))
    (define mine (make-account 100))
    (define yours (make-account 50))
    (mine -30)
    (yours 5)
    (display (cons (mine 0) (yours 0)))
    (define sieve
      (lambda (numbers)
        (if (null? numbers)
            numbers
            (let ((p (car numbers)))
              (cons p (sieve (filter (lambda (n) (if (= (remainder n p) 0) #f #t)) (cdr numbers))))))))
    (define filter
      (lambda (keep items)
        (if (null? items)
            items
            (if (keep (car items))
                (cons (car items) (filter keep (cdr items)))
                (filter keep (cdr items))))))
    (display (sieve (from 2 60)))))

(evaluate-all program (global-environment))
