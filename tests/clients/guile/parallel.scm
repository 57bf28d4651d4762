;; Threads: par-map, futures, a producer and its consumers on a mutex and a condition variable, threads that
;; come and go, all of them allocating. Argument: work for each item.
(use-modules (ice-9 format) (ice-9 futures) (ice-9 threads) (srfi srfi-1))

(define work (string->number (cadr (command-line))))

;; Guile 3.0.8 has a race, with any libgc: a thread moves its stack to a larger place, and a collection
;; that another thread begins just then gives everything between the two places back to the system
;; (2 of 100 runs crash). So stacks grow while collections are off, before the work.
(define (grow-stack depth) (if (zero? depth) 0 (1+ (grow-stack (1- depth)))))
(define (without-collections thunk)
  (gc-disable)
  (let ((result (thunk)))
    (gc-enable)
    result))

;; And it loses wake-ups: a thread that waits for a mutex or a condition and is interrupted (by what runs
;; after a collection) waits again without looking whether it was woken meanwhile, for ever if nobody wakes
;; it once more (with any libgc: libguile/threads.c). So nothing interrupts a thread here that waits.
(define-syntax-rule (uninterrupted body ...)
  (call-with-blocked-asyncs (lambda () body ...)))
(define (wait-for condition mutex)
  (uninterrupted (wait-condition-variable condition mutex)))
(define-syntax-rule (with-lock mutex body ...)
  (dynamic-wind
    (lambda () (uninterrupted (lock-mutex mutex)))
    (lambda () body ...)
    (lambda () (unlock-mutex mutex))))
(define (result-of future) (uninterrupted (touch future)))
(define (joined thread) (uninterrupted (join-thread thread)))

(define ready 0)
(define ready-lock (make-mutex))
(define ready-changed (make-condition-variable))

;; Starts one thread for each thunk; they begin when all are there.
(define (start-threads thunks)
  (let ((target (+ ready (length thunks))))
    (without-collections
     (lambda ()
       (let ((threads
              (map (lambda (thunk)
                     (call-with-new-thread
                      (lambda ()
                        (grow-stack 5000)
                        (with-lock ready-lock
                          (set! ready (1+ ready))
                          (broadcast-condition-variable ready-changed)
                          (let wait ()
                            (when (< ready target)
                              (wait-for ready-changed ready-lock)
                              (wait))))
                        (thunk))))
                   thunks)))
         (with-lock ready-lock
           (let wait ()
             (when (< ready target)
               (wait-for ready-changed ready-lock)
               (wait))))
         threads)))))

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

(grow-stack 5000)
(gc)            ; starts Guile's finalizer thread ...
(usleep 20000)  ; ... and lets it come to rest
(without-collections  ; so do the threads behind futures and par-map
 (lambda () (uninterrupted (par-map (lambda (_) (grow-stack 5000) (usleep 500)) (iota 64)))))

(define serial (map item-work (iota 32)))
(format #t "par-map: ~a~%" (if (equal? serial (uninterrupted (par-map item-work (iota 32)))) 'same 'different))

(define futures (map (lambda (i) (future (item-work i))) (iota 32)))
(format #t "futures: ~a~%" (if (equal? serial (map result-of futures)) 'same 'different))

;; Within a future, touch does not wait but lets the thread go on with another. Two levels, not more: with
;; three Guile can lock up (with any libgc, and no collection at all), since the other future runs on the same
;; stack, and may wait for one that is suspended until a future beneath it there is done.
(define (tree-sum depth)
  (if (< depth 3)
      (count-pairs (make-tree (+ 8 depth)))
      (+ (tree-sum (1- depth)) (tree-sum (1- depth)))))
(define (tree-sum-in-parallel depth)
  (let ((left (future (tree-sum (1- depth)))))
    (+ (tree-sum (1- depth)) (touch left))))
(define sums (map (lambda (_) (future (tree-sum-in-parallel 4))) (iota 16)))
(format #t "nested futures: ~d~%" (apply + (map result-of sums)))

(define slots (make-vector 32 #f))
(for-each joined
          (start-threads
           (map (lambda (first)
                  (lambda ()
                    (do ((i first (+ i 4)))
                        ((>= i 32))
                      (vector-set! slots i (item-work i)))))
                (iota 4))))
(format #t "four threads: ~a~%" (if (equal? serial (vector->list slots)) 'same 'different))

;; A queue between threads. Every message is fresh, so it is found through stacks and the queue alone.
(define lock (make-mutex))
(define changed (make-condition-variable))
(define queue '())
(define finished #f)

(define (consumer)
  (let loop ((sum 0))
    (let ((message
           (with-lock lock
             (let wait ()
               (cond ((pair? queue)
                      (let ((m (car queue))) (set! queue (cdr queue)) m))
                     (finished #f)
                     (else (wait-for changed lock) (wait)))))))
      (if message
          (loop (+ sum (apply + (vector->list message))))
          sum))))

(define consumers (start-threads (list consumer consumer consumer)))
(do ((i 0 (1+ i)))
    ((= i (* 200 work)))
  (let ((message (make-vector 20 i)))
    (with-lock lock
      (set! queue (cons message queue))
      (signal-condition-variable changed))))
(with-lock lock
  (set! finished #t)
  (broadcast-condition-variable changed))
(format #t "messages: ~d~%" (apply + (map joined consumers)))

;; Threads that come and go.
(format #t "short threads: ~d~%"
        (let loop ((i 0) (acc 0))
          (if (= i work)
              acc
              (loop (1+ i)
                    (apply + acc
                           (map joined
                                (start-threads
                                 (map (lambda (_) (lambda () (count-pairs (make-tree 9))))
                                      (iota 4)))))))))
