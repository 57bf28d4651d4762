; The language itself, piece by piece; each line says what it shows.

(define (show what value)
  (display what)
  (display ": ")
  (write value)
  (newline))

(show "constants" (list 1 -5 1.5 -0.25 1e100 #t #f '() "a \"b\"\n" #\a 'symbol '#(1 (2 . 3) "s") car))
(show "arithmetic" (list (+) (+ 1 2 3.5) (- 5) (- 10 1 2) (* 2 3 4) (/ 6 3) (/ 1 4) (/ 2.0 4)))
(show "division" (list (quotient -7 2) (remainder -7 2) (modulo -7 2) (gcd 12 18) (expt 2 60)))
(show "the largest" (list 2305843009213693951 (- -2305843009213693951 1)))
(show "the largest of flonums"
      (list (truncate->exact 2305843009213693696.0) (truncate->exact -2305843009213693952.0)))
(show "comparison" (list (< 1 2) (= 1 1.0) (eqv? 1.5 1.5) (eq? '() '()) (equal? '(1 #(2 "x")) '(1 #(2 "x")))))

; Variables.
(define counter
  (let ((n 0))
    (lambda () (set! n (+ n 1)) n)))
(counter)
(show "an assigned variable" (counter))
(show "bindings" (let* ((x 1) (y (+ x 1))) (let ((x y) (y x)) (list x y))))
(show "definitions inside"
      (let ()
        (define x 1)
        (define (f) (set! x (+ x y)) x)
        (define y 5)
        (f)))
(show "letrec"
      (letrec ((even? (lambda (n) (if (= n 0) #t (odd? (- n 1)))))
               (odd? (lambda (n) (if (= n 0) #f (even? (- n 1))))))
        (map even? '(1 2 3))))
(show "each round its own variable"
      (map (lambda (f) (f))
           (do ((i 0 (+ i 1))
                (all '() (cons (lambda () (set! i (+ i 10)) i) all)))
               ((= i 3) all))))
(show "at once" (let next ((a 1) (b 2) (n 5)) (if (= n 0) (list a b) (next b a (- n 1)))))
(show "a keyword as a variable" (let ((if list)) (if 1 2 3)))

; Control.
(show "cond" (map (lambda (n) (cond ((< n 0) 'negative) ((assq n '((0 . zero))) 'zero) (else 'positive)))
                  '(-1 0 1)))
(show "case" (map (lambda (n) (case n ((1 2) 'low) ((3 x) 'high) (else 'other))) '(2 3 x y)))
(show "and, or" (list (and) (and 1 2) (and #f (car '())) (or) (or #f 3) (or 1 (car '()))))
(show "when, unless" (list (when (= 1 1) 'yes) (unless (= 1 1) 'yes)))
(show "nested loops"
      (let outer ((i 0) (all '()))
        (if (= i 3)
            (reverse all)
            (let inner ((j 0) (all all))
              (if (= j 2) (outer (+ i 1) all) (inner (+ j 1) (cons (list i j) all)))))))

; Calls in tail position, a million of them.
(define (even-number? n) (if (= n 0) #t (odd-number? (- n 1))))
(define (odd-number? n) (if (= n 0) #f (even-number? (- n 1))))
(show "mutual" (even-number? 1000000))
(define (call f n) (if (= n 0) 'done (f f (- n 1))))
(show "an argument" (call call 1000000))
(define (passing n k) (if (= n 0) (k 0) (passing (- n 1) (lambda (x) (k (+ x 1))))))
(show "continuations" (passing 10000 (lambda (x) x)))
(define (rest-of n . more) (if (= n 0) more (rest-of (- n 1) n (car more))))
(show "with a list of arguments" (rest-of 10000 'a 'b))

; Procedures as values.
(show "arguments" (list ((lambda all all) 1 2) ((lambda (a . more) more) 1 2 3) (apply max '(3 4))))
(show "primitives" (map + '(1 2) '(10 20)))
(define (compose f g) (lambda (x) (f (g x))))
(show "closures" ((compose (lambda (x) (* x x)) (lambda (x) (+ x 1))) 4))
(show "many variables"
      (let ((a 1) (b 2) (c 3) (d 4) (e 5) (f 6) (g 7) (h 8))
        ((lambda (x) (list a b c d e f g h x)) 9)))

; Data.
(show "append" (append '(1 2) '(3) '() '(4 . 5)))
(show "strings" (list (string-append "a" "bc") (substring "abcdef" 2 4) (string->list "ab") (string<? "a" "b")))
(show "symbols" (list (eq? 'abc (string->symbol (string-append "a" "bc")))
                      (eq? (string->symbol "new one") (string->symbol "new one"))
                      (symbol->string 'abc)))
(define constant '(1 2))
(set-car! constant (list 'changed))
(collect)
(show "a changed constant" constant)
(show "vectors" (let ((v (make-vector 3 'x))) (vector-set! v 1 v) (list (vector-length v) (eq? v (vector-ref v 1)))))
(show "weak" (let ((kept (list 1 2))) (collect) (equal? (weak-value (make-weak kept)) kept)))
