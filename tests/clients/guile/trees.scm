;; Binary trees: builds and drops complete trees of many depths while one long-lived tree stays, then
;; does the same with vectors as nodes. Argument: the greatest depth.
(use-modules (ice-9 format) (srfi srfi-9))

(define depth (string->number (cadr (command-line))))

(define (make-tree depth)
  (if (zero? depth)
      '(() . ())
      (cons (make-tree (1- depth)) (make-tree (1- depth)))))

(define (count-pairs tree)
  (if (null? tree)
      0
      (+ 1 (count-pairs (car tree)) (count-pairs (cdr tree)))))

(define-record-type <node>
  (make-node key left right)
  node?
  (key node-key)
  (left node-left)
  (right node-right set-node-right!))

(define (make-records depth key)
  (and (positive? depth)
       (make-node key
                  (make-records (1- depth) (* 2 key))
                  (make-records (1- depth) (1+ (* 2 key))))))

(define (sum-keys node)
  (if node
      (+ (node-key node) (sum-keys (node-left node)) (sum-keys (node-right node)))
      0))

(define (mirror vec)
  (and vec
       (vector (mirror (vector-ref vec 1)) (mirror (vector-ref vec 0)))))

(define (make-vectors depth)
  (and (positive? depth)
       (vector (make-vectors (1- depth)) (make-vectors (1- depth)))))

(define (count-vectors vec)
  (if vec
      (+ 1 (count-vectors (vector-ref vec 0)) (count-vectors (vector-ref vec 1)))
      0))

(define long-lived (make-tree depth))

(do ((d 4 (+ d 2)))
    ((> d depth))
  (let ((rounds (ash 1 (+ 4 (- depth d)))))
    (let loop ((i 0) (total 0))
      (if (< i rounds)
          (loop (1+ i) (+ total (count-pairs (make-tree d))))
          (format #t "~d trees of depth ~d: ~d pairs~%" rounds d total)))))

(format #t "long-lived tree: ~d pairs~%" (count-pairs long-lived))
(format #t "records: keys sum to ~d~%" (sum-keys (make-records depth 1)))
(format #t "vectors: ~d~%" (count-vectors (mirror (mirror (make-vectors depth)))))
