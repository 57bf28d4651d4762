;; Threads: par-map, futures, n-par-for-each and a producer and its consumers on a mutex and a condition
;; variable, all of them allocating. Argument: work for each item.
(use-modules (ice-9 format) (ice-9 futures) (ice-9 threads) (srfi srfi-1))

(define work (string->number (cadr (command-line))))

(define (make-tree depth)
  (if (zero? depth) '() (cons (make-tree (1- depth)) (make-tree (1- depth)))))
(define (count-pairs tree)
  (if (null? tree) 0 (+ 1 (count-pairs (car tree)) (count-pairs (cdr tree)))))

(define (item-work item)
  (let loop ((i 0) (acc item))
    (if (= i work)
        acc
        (loop (1+ i)
              (modulo (+ (* acc 31) (count-pairs (make-tree (+ 6 (modulo (+ item i) 5))))
                         (string-length (number->string (expt 7 (modulo (+ item i) 90)))))
                      1000000007)))))

(define serial (map item-work (iota 32)))
(format #t "par-map: ~a~%" (if (equal? serial (par-map item-work (iota 32))) 'same 'different))

(define futures (map (lambda (i) (future (item-work i))) (iota 32)))
(format #t "futures: ~a~%" (if (equal? serial (map touch futures)) 'same 'different))

(define (tree-sum-in-parallel depth)
  (if (< depth 3)
      (count-pairs (make-tree (+ 8 depth)))
      (let ((left (future (tree-sum-in-parallel (1- depth)))))
        (+ (tree-sum-in-parallel (1- depth)) (touch left)))))
(format #t "nested futures: ~d~%" (tree-sum-in-parallel 8))

(define slots (make-vector 32 #f))
(n-par-for-each 4 (lambda (i) (vector-set! slots i (item-work i))) (iota 32))
(format #t "n-par-for-each: ~a~%" (if (equal? serial (vector->list slots)) 'same 'different))

;; A queue between threads. Every message is fresh, so it is found through stacks and the queue alone.
(define lock (make-mutex))
(define changed (make-condition-variable))
(define queue '())
(define finished #f)

(define (consumer)
  (let loop ((sum 0))
    (let ((message
           (with-mutex lock
             (let wait ()
               (cond ((pair? queue)
                      (let ((m (car queue))) (set! queue (cdr queue)) m))
                     (finished #f)
                     (else (wait-condition-variable changed lock) (wait)))))))
      (if message
          (loop (+ sum (apply + (vector->list message))))
          sum))))

(define consumers (map (lambda (_) (call-with-new-thread consumer)) (iota 3)))
(do ((i 0 (1+ i)))
    ((= i (* 200 work)))
  (let ((message (make-vector 20 i)))
    (with-mutex lock
      (set! queue (cons message queue))
      (signal-condition-variable changed))))
(with-mutex lock
  (set! finished #t)
  (broadcast-condition-variable changed))
(format #t "messages: ~d~%" (apply + (map join-thread consumers)))

;; Threads that come and go.
(format #t "short threads: ~d~%"
        (let loop ((i 0) (acc 0))
          (if (= i (* 4 work))
              acc
              (loop (1+ i)
                    (+ acc (join-thread
                            (call-with-new-thread (lambda () (count-pairs (make-tree 8))))))))))
