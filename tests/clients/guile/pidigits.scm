;; Digits of pi by Gibbons' spigot (the unbounded one, on exact integers), and a factorial: bignums by the
;; thousand, growing all the time. Argument: how many digits.
(use-modules (ice-9 format))

(define digits (string->number (cadr (command-line))))

(define (print-digit d position)
  (display d)
  (when (zero? (modulo position 50))
    (format #t "  ~d~%" position)))

(let next ((q 1) (r 0) (t 1) (k 1) (n 3) (l 3) (position 0))
  (when (< position digits)
    (if (< (+ (* 4 q) (- r t)) (* n t))
        (begin
          (print-digit n (1+ position))
          (next (* 10 q)
                (* 10 (- r (* n t)))
                t
                k
                (- (quotient (* 10 (+ (* 3 q) r)) t) (* 10 n))
                l
                (1+ position)))
        (next (* q k)
              (* (+ (* 2 q) r) l)
              (* t l)
              (1+ k)
              (quotient (+ (* q (+ (* 7 k) 2)) (* r l)) (* t l))
              (+ l 2)
              position))))
(newline)

(define (factorial n)
  (let loop ((i 1) (acc 1))
    (if (> i n) acc (loop (1+ i) (* acc i)))))

(define big (factorial (* 2 digits)))
(format #t "~d! modulo 2^61-1 is ~d~%" (* 2 digits) (modulo big (1- (expt 2 61))))
(format #t "a ratio: ~a~%"
        (let loop ((i 1) (sum 0))
          (if (> i 60) sum (loop (1+ i) (+ sum (/ 1 i))))))
