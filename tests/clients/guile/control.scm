;; Control: closures, streams, generators on call/cc, prompts (delimited continuations), exceptions and
;; parameters. Stacks are copied to the heap and back. Argument: the number of rounds.
(use-modules (ice-9 format) (ice-9 control) (srfi srfi-1) (srfi srfi-41))

(define rounds (string->number (cadr (command-line))))

;; Generators that re-enter: full continuations, each a copy of the stack.
(define (tree-generator tree)
  (define return #f)
  (define (resume)
    (let walk ((tree tree))
      (cond ((null? tree) #f)
            ((pair? tree) (walk (car tree)) (walk (cdr tree)))
            (else
             (call/cc (lambda (rest)
                        (set! resume (lambda () (rest #f)))
                        (return tree))))))
    (return 'done))
  (lambda ()
    (call/cc (lambda (k) (set! return k) (resume)))))

(define (same-fringe? a b)
  (let ((next-a (tree-generator a)) (next-b (tree-generator b)))
    (let loop ((n 0))
      (let ((x (next-a)) (y (next-b)))
        (cond ((not (eqv? x y)) (list 'different n))
              ((eq? x 'done) (list 'same n))
              (else (loop (1+ n))))))))

(define (left-tree n) (fold (lambda (i acc) (cons acc (list i))) (list 0) (iota n 1)))
(define (right-tree n) (iota (1+ n)))

(do ((i 0 (1+ i)))
    ((= i (quotient rounds 100)))
  (let ((answer (same-fringe? (left-tree 60) (right-tree 60))))
    (unless (equal? answer '(same 61))
      (error "fringes differ" answer))))
(format #t "fringes are the same~%")

;; Delimited continuations: a search with backtracking (queens), choices taken through a prompt.
(define tag (make-prompt-tag "choose"))

(define (choose-all thunk)
  (define results '())
  (let try ((thunk (lambda () (set! results (cons (thunk) results)))))
    (call-with-prompt tag
      thunk
      (lambda (k choices)
        (for-each (lambda (choice) (try (lambda () (k choice)))) choices))))
  results)

(define (choose choices) (abort-to-prompt tag choices))

(define (queens n)
  (choose-all
   (lambda ()
     (let place ((row 0) (columns '()))
       (if (= row n)
           columns
           (let ((column
                  (choose
                   (filter (lambda (c)
                             (every (lambda (other distance)
                                      (not (or (= c other) (= (abs (- c other)) distance))))
                                    columns
                                    (iota (length columns) 1)))
                           (iota n)))))
             (place (1+ row) (cons column columns))))))))

(let ((n (if (> rounds 20000) 8 6)))
  (let ((solutions (queens n)))
    (format #t "queens ~d: ~d solutions, first ~a~%" n (length solutions)
            (car (sort solutions (lambda (a b) (< (fold + 0 (map * a (iota n 1)))
                                                  (fold + 0 (map * b (iota n 1))))))))))

;; Closures and lazy streams.
(define (compose-many n)
  (fold (lambda (i f) (lambda (x) (modulo (+ (* 3 (f x)) i) 1000003))) identity (iota n)))
(format #t "closures: ~d~%"
        (let loop ((i 0) (acc 0))
          (if (= i (quotient rounds 20)) acc (loop (1+ i) ((compose-many 60) (+ acc i))))))

(define (primes-stream s)
  (let ((p (stream-car s)))
    (stream-cons p (primes-stream
                    (stream-filter (lambda (x) (not (zero? (modulo x p)))) (stream-cdr s))))))
(format #t "stream: ~d~%" (stream-ref (primes-stream (stream-from 2)) (quotient rounds 100)))

;; Exceptions and dynamic state.
(define depth (make-parameter 0))
(define (descend n)
  (parameterize ((depth (1+ (depth))))
    (if (zero? n)
        (raise-exception (list 'bottom (depth)))
        (with-exception-handler
          (lambda (e) (list (car e) (cadr e) n))
          (lambda () (descend (1- n)))
          #:unwind? #t))))
(format #t "exceptions: ~a~%"
        (let loop ((i 0) (acc 0))
          (if (= i (quotient rounds 40)) acc (loop (1+ i) (+ acc (cadr (descend 20)))))))
