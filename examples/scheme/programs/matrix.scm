; Determinants of matrices of fractions, exactly: a fraction is a pair of fixnums.

(define (fraction n d)
  (let ((g (if (< d 0) (- (gcd n d)) (gcd n d))))
    (cons (quotient n g) (quotient d g))))
(define (add a b)
  (let* ((g (gcd (cdr a) (cdr b))) (d (quotient (cdr b) g)))
    (fraction (+ (* (car a) d) (* (car b) (quotient (cdr a) g))) (* (cdr a) d))))
(define (multiply a b)
  (let ((x (fraction (car a) (cdr b))) (y (fraction (car b) (cdr a))))
    (cons (* (car x) (car y)) (* (cdr x) (cdr y)))))
(define (negate a) (cons (- (car a)) (cdr a)))
(define (inverse a) (fraction (cdr a) (car a)))
(define nought (fraction 0 1))

(define (make-matrix n f)
  (vector-map (lambda (i) (vector-map (lambda (j) (f i j)) (list->vector (iota n))))
              (list->vector (iota n))))
(define (item m i j) (vector-ref (vector-ref m i) j))

(define (swap-rows! m i j)
  (let ((kept (vector-ref m i)))
    (vector-set! m i (vector-ref m j))
    (vector-set! m j kept)))

(define (pivot m column)
  (let next ((i column))
    (cond ((= i (vector-length m)) #f)
          ((equal? (item m i column) nought) (next (+ i 1)))
          (else i))))

(define (eliminate! m column i)
  (let ((factor (negate (multiply (item m i column) (inverse (item m column column))))))
    (do ((j column (+ j 1)))
        ((= j (vector-length m)))
      (vector-set! (vector-ref m i) j (add (item m i j) (multiply factor (item m column j)))))))

(define (determinant m)
  (let next ((column 0) (result (fraction 1 1)))
    (if (= column (vector-length m))
        result
        (let ((row (pivot m column)))
          (if (not row)
              nought
              (begin
                (unless (= row column) (swap-rows! m row column))
                (do ((i (+ column 1) (+ i 1)))
                    ((= i (vector-length m)))
                  (eliminate! m column i))
                (let ((factor (item m column column)))
                  (next (+ column 1)
                        (multiply result (if (= row column) factor (negate factor)))))))))))

; By cofactors, for small ones: the same in another way.
(define (minor m column)
  (let ((n (- (vector-length m) 1)))
    (make-matrix n (lambda (i j) (item m (+ i 1) (if (< j column) j (+ j 1)))))))
(define (by-cofactors m)
  (if (= (vector-length m) 1)
      (item m 0 0)
      (let next ((j 0) (sum nought) (sign (fraction 1 1)))
        (if (= j (vector-length m))
            sum
            (next (+ j 1)
                  (add sum (multiply sign (multiply (item m 0 j) (by-cofactors (minor m j)))))
                  (negate sign))))))

(define (hilbert n) (make-matrix n (lambda (i j) (fraction 1 (+ i j 1)))))
(define (some n)
  (make-matrix n (lambda (i j) (fraction (- (modulo (+ (* i i 3) (* j 7) (* i j)) 11) 5) 1))))

(do ((n 1 (+ n 1)))
    ((> n 6))
  (write (determinant (hilbert n)))
  (display (if (equal? (determinant (hilbert n)) (by-cofactors (hilbert n))) " same " " different "))
  (write (determinant (some n)))
  (newline))
