;;;; Consing, hash tables, bignums, CLOS objects, strings, conditions; weak pointers and finalizers; threads.
;;;; The driver defines *size*.

(defstruct node key left right)

(defun make-nodes (depth key)
  (if (zerop depth)
      nil
      (make-node :key key
                 :left (make-nodes (1- depth) (* 2 key))
                 :right (make-nodes (1- depth) (1+ (* 2 key))))))

(defun sum-nodes (node)
  (if node
      (+ (node-key node) (sum-nodes (node-left node)) (sum-nodes (node-right node)))
      0))

(defun trees (depth)
  (let ((long-lived (make-nodes depth 1)) (total 0))
    (loop for d from 4 to depth by 2
          do (loop repeat (ash 1 (- depth d))
                   do (incf total (sum-nodes (make-nodes d 1)))))
    (format t "trees: ~d ~d~%" total (sum-nodes long-lived))))

(defun lists (n)
  (let* ((seed 42)
         (items (loop repeat n
                      collect (setf seed (mod (+ (* seed 1103515245) 12345) 2147483648))))
         (sorted (sort (copy-list items) #'<))
         (groups (make-hash-table)))
    (dolist (x items) (push x (gethash (mod x 97) groups)))
    (format t "lists: ~d ~d ~d~%"
            (length (remove-duplicates sorted :test #'eql :start (max 0 (- n 500))))
            (reduce #'max (mapcar #'length (loop for v being the hash-values of groups collect v)))
            (reduce (lambda (acc x) (mod (+ (* acc 31) x) 1000000007)) sorted))))

(defun words (n)
  (let ((table (make-hash-table :test #'equal)))
    (dotimes (i n)
      (incf (gethash (format nil "word-~36r" (mod (* i 7919) 4001)) table 0)))
    (format t "words: ~d distinct, ~d counted~%" (hash-table-count table)
            (loop for v being the hash-values of table sum v))))

(defun bignums (n)
  (let ((product 1))
    (loop for i from 1 to n do (setf product (* product i)))
    (format t "bignums: ~d digits, ~d~%" (length (format nil "~d" product))
            (mod product (1- (expt 2 61))))))

(defclass shape () ((name :initarg :name :reader shape-name)))
(defclass square (shape) ((side :initarg :side :reader side)))
(defclass circle (shape) ((radius :initarg :radius :reader radius)))
(defgeneric area (shape))
(defmethod area ((s square)) (* (side s) (side s)))
(defmethod area ((c circle)) (* 3 (radius c) (radius c)))

(defun objects (n)
  (let ((shapes (loop for i below n
                      collect (if (evenp i)
                                  (make-instance 'square :name i :side i)
                                  (make-instance 'circle :name (list i) :radius i)))))
    (format t "objects: ~d~%" (reduce #'+ (mapcar #'area shapes)))))

(define-condition too-deep (error) ((depth :initarg :depth :reader too-deep-depth)))
(defun descend (n)
  (if (zerop n) (error 'too-deep :depth 0) (cons n (descend (1- n)))))
(defun conditions (n)
  (format t "conditions: ~d~%"
          (loop for i below n
                sum (handler-case (length (descend (mod i 40)))
                      (too-deep (c) (1+ (too-deep-depth c)))))))

;;; The collector may keep a few by accident, so the answer is whether most went.
(defvar *finalized* 0)
(defvar *kept* nil)
(defun drop-some (n)
  (dotimes (i n)
    (let ((object (make-node :key i)))
      (ext:set-finalizer object (lambda (o) (declare (ignore o)) (incf *finalized*))))))
(defun clobber (depth) (if (zerop depth) nil (cons depth (clobber (1- depth)))))
(defun finalizers (n)
  (drop-some n)
  (clobber 300)
  (setf *kept* (make-node :key 'kept))
  (let ((pointer (ext:make-weak-pointer *kept*)))
    (ext:set-finalizer *kept* (lambda (o) (declare (ignore o)) (format t "finalized a live object~%")))
    (loop repeat 20 until (>= *finalized* (* 9/10 n))
          do (ext:gc t) (clobber 300) (make-nodes 10 1))
    (format t "finalizers: ~a~%" (if (<= (* 9/10 n) *finalized* n) 'most *finalized*))
    (format t "weak pointer: ~a~%" (node-key (ext:weak-pointer-value pointer)))))

(defun threads (count work)
  #+threads
  (let* ((lock (mp:make-lock :name "sum"))
         (sum 0)
         (processes
           (loop for i below count
                 collect (let ((i i))
                           (mp:process-run-function
                            (format nil "worker ~d" i)
                            (lambda ()
                              (loop repeat work
                                    do (let ((part (sum-nodes (make-nodes 8 (1+ i)))))
                                         (mp:with-lock (lock) (incf sum part))))))))))
    (mapc #'mp:process-join processes)
    (format t "threads: ~d~%" sum))
  #-threads
  (format t "threads: none~%"))

(trees (if (> *size* 1) 17 10))
(lists (* *size* 20000))
(words (* *size* 10000))
(bignums (* *size* 300))
(objects (* *size* 6000))
(conditions (* *size* 2000))
(finalizers 1000)
(threads 3 (* *size* 40))
