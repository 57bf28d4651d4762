; In how many ways can n queens stand on a board of n by n fields? Lists of columns, one a row.

(define (safe? column rows distance)
  (or (null? rows)
      (let ((other (car rows)))
        (and (not (= column other))
             (not (= (abs (- column other)) distance))
             (safe? column (cdr rows) (+ distance 1))))))

(define (solutions n)
  (let place ((row 0) (boards '(())))
    (if (= row n)
        boards
        (place (+ row 1)
               (fold-left
                (lambda (all board)
                  (fold-left
                   (lambda (all column)
                     (if (safe? column board 1) (cons (cons column board) all) all))
                   all
                   (iota n)))
                '()
                boards)))))

(define most (command-line-number 1 8))
(do ((n 1 (+ n 1)))
    ((> n most))
  (display n)
  (display ": ")
  (display (length (solutions n)))
  (newline))
(display (car (sort (map reverse (solutions 6))
                    (lambda (a b)
                      (let less? ((a a) (b b))
                        (cond ((null? a) #f)
                              ((= (car a) (car b)) (less? (cdr a) (cdr b)))
                              (else (< (car a) (car b)))))))))
(newline)
