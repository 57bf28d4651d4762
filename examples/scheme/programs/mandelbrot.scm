; The Mandelbrot set, in letters. Every number on the way is an object of its own.

(define (steps cr ci most)
  (let next ((zr 0.0) (zi 0.0) (n 0))
    (let ((rr (* zr zr)) (ii (* zi zi)))
      (if (or (= n most) (> (+ rr ii) 4.0))
          n
          (next (+ (- rr ii) cr) (+ (* 2.0 (* zr zi)) ci) (+ n 1))))))

(define letters " .:-=+*#%@")

(define (draw width height)
  (do ((y 0 (+ y 1)))
      ((= y height))
    (do ((x 0 (+ x 1)))
        ((= x width) (newline))
      (let ((n (steps (- (/ (* 3.0 x) width) 2.25) (- (/ (* 2.5 y) height) 1.25) 36)))
        (display (string-ref letters (quotient n 4)))))))

(define width (command-line-number 1 64))
(draw width (quotient (* 3 width) 8))
