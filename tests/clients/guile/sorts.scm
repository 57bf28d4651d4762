;; Lists: sorts, merges, folds, association lists and a sieve over lists that live for a while.
;; Argument: the length of a list.
(use-modules (ice-9 format) (srfi srfi-1))

(define size (string->number (cadr (command-line))))

(define (make-generator seed)
  (lambda ()
    (set! seed (modulo (+ (* seed 6364136223846793005) 1442695040888963407) 18446744073709551616))
    (ash seed -40)))

(define (random-list n seed)
  (let ((next (make-generator seed)))
    (let loop ((i 0) (acc '()))
      (if (= i n) acc (loop (1+ i) (cons (next) acc))))))

(define (merge-lists a b)
  (let loop ((a a) (b b) (acc '()))
    (cond ((null? a) (append-reverse acc b))
          ((null? b) (append-reverse acc a))
          ((< (car b) (car a)) (loop a (cdr b) (cons (car b) acc)))
          (else (loop (cdr a) b (cons (car a) acc))))))

(define (merge-sort items n)
  (if (< n 2)
      (if (zero? n) '() (list (car items)))
      (let ((half (quotient n 2)))
        (merge-lists (merge-sort items half)
                     (merge-sort (list-tail items half) (- n half))))))

(define (quick-sort items)
  (if (or (null? items) (null? (cdr items)))
      items
      (let ((pivot (car items)))
        (call-with-values (lambda () (partition (lambda (x) (< x pivot)) (cdr items)))
          (lambda (low high)
            (append (quick-sort low) (cons pivot (quick-sort high))))))))

(define (digest items)
  (fold (lambda (x acc) (modulo (+ (* acc 131) x) 2305843009213693951)) 17 items))

(define kept
  (map (lambda (round)
         (let* ((items (random-list size round))
                (merged (merge-sort items size))
                (quick (quick-sort items))
                (library (sort items <)))
           (unless (and (equal? merged quick) (equal? merged library))
             (error "sorts disagree in round" round))
           (format #t "round ~d: ~d~%" round (digest merged))
           merged))
       (iota 6 1)))

(define all (reduce merge-lists '() kept))
(format #t "merged: ~d items, ~d~%" (length all) (digest all))
(format #t "without repeats: ~d~%"
        (let loop ((rest all) (last #f) (n 0))
          (cond ((null? rest) n)
                ((eqv? (car rest) last) (loop (cdr rest) last n))
                (else (loop (cdr rest) (car rest) (1+ n))))))

(define (sieve n)
  (let loop ((candidates (iota (- n 1) 2)) (primes '()))
    (if (or (null? candidates) (> (* (car candidates) (car candidates)) n))
        (append-reverse primes candidates)
        (let ((p (car candidates)))
          (loop (filter (lambda (x) (not (zero? (modulo x p)))) (cdr candidates))
                (cons p primes))))))

(format #t "primes: ~d~%" (digest (sieve size)))
