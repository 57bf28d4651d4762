; Five bodies under gravity, each a vector of position, velocity and mass, and a check that the
; energy stays.

(define pi 3.141592653589793)
(define solar-mass (* 4 pi pi))
(define year 365.24)
(define (body x y z vx vy vz mass)
  (vector x y z (* vx year) (* vy year) (* vz year) (* mass solar-mass)))

(define bodies
  (list
   (body 0.0 0.0 0.0 0.0 0.0 0.0 1.0)
   (body 4.84143144246472090 -1.16032004402742839 -0.103622044471123109
         0.00166007664274403694 0.00769901118419740425 -0.0000690460016972063023
         0.000954791938424326609)
   (body 8.34336671824457987 4.12479856412430479 -0.403523417114321381
         -0.00276742510726411 0.00499852801234917238 0.0000230417297573763929
         0.000285885980666130812)
   (body 12.8943695621391310 -15.1111514016986312 -0.223307578892655734
         0.00296460137564761618 0.00237847173959480950 -0.0000296589568540237556
         0.0000436624404335156298)
   (body 15.3796971148509165 -25.9193146099879641 0.179258772950371181
         0.00268067772490389322 0.00162824170038242295 -0.0000951592254519715870
         0.0000515138902046611451)))

(define (mass body) (vector-ref body 6))
(define (add! body i amount) (vector-set! body i (+ (vector-ref body i) amount)))

(define (distance-squared a b)
  (let next ((i 0) (sum 0.0))
    (if (= i 3)
        sum
        (next (+ i 1) (+ sum (square (- (vector-ref a i) (vector-ref b i))))))))

; Calls f with each two bodies.
(define (for-each-pair f bodies)
  (unless (null? bodies)
    (let ((a (car bodies)))
      (for-each (lambda (b) (f a b)) (cdr bodies))
      (for-each-pair f (cdr bodies)))))

(define (advance dt)
  (for-each-pair
   (lambda (a b)
     (let* ((d2 (distance-squared a b))
            (magnitude (/ dt (* d2 (sqrt d2)))))
       (do ((i 0 (+ i 1)))
           ((= i 3))
         (let ((d (- (vector-ref a i) (vector-ref b i))))
           (add! a (+ i 3) (- (* d (* (mass b) magnitude))))
           (add! b (+ i 3) (* d (* (mass a) magnitude)))))))
   bodies)
  (for-each
   (lambda (a)
     (do ((i 0 (+ i 1)))
         ((= i 3))
       (add! a i (* dt (vector-ref a (+ i 3))))))
   bodies))

(define (energy)
  (let ((sum 0.0))
    (for-each
     (lambda (a)
       (set! sum (+ sum (* 0.5 (mass a) (+ (square (vector-ref a 3)) (square (vector-ref a 4))
                                           (square (vector-ref a 5)))))))
     bodies)
    (for-each-pair
     (lambda (a b) (set! sum (- sum (/ (* (mass a) (mass b)) (sqrt (distance-squared a b))))))
     bodies)
    sum))

; The sum of all momenta is to be zero.
(define (offset-momentum!)
  (do ((i 3 (+ i 1)))
      ((= i 6))
    (let ((momentum (fold-left (lambda (sum a) (+ sum (* (mass a) (vector-ref a i)))) 0.0 bodies)))
      (vector-set! (car bodies) i (- (/ momentum solar-mass))))))

(define (rounded x) (/ (truncate->exact (* x 1000000)) 1000000.0))

(offset-momentum!)
(display (rounded (energy)))
(newline)
(do ((i 0 (+ i 1)))
    ((= i (command-line-number 1 300)))
  (advance 0.01))
(display (rounded (energy)))
(newline)
(display (map (lambda (x) (rounded x)) (list (vector-ref (cadr bodies) 0) (vector-ref (cadr bodies) 1))))
(newline)
