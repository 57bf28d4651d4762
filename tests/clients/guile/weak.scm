;; What the collector tells the program: guardians, weak hash tables of the three kinds, weak vectors,
;; object properties. A conservative collector may keep a few dead objects, so the program says whether
;; most were given back, and that none was that is still in use. Argument: objects in each part.
(use-modules (ice-9 format) (ice-9 weak-vector) (srfi srfi-1))

(define n (string->number (cadr (command-line))))

(define (say what ok) (format #t "~a: ~a~%" what (if ok "as expected" "WRONG")))
(define (most? count of) (>= count (* 9/10 of)))

;; Overwrites what dead frames left on the stacks.
(define (clobber depth) (if (zero? depth) '() (cons depth (clobber (1- depth)))))
(define (collect)
  (clobber 200)
  (gc)
  (clobber 200)
  (gc))

;; Guardians. Every object comes out at most once, with its contents.
(define guardian (make-guardian))
(define kept (map (lambda (i) (let ((v (vector 'kept i))) (guardian v) v)) (iota 100)))
(let loop ((i 0))
  (when (< i n)
    (guardian (vector 'dropped i (number->string i)))
    (loop (1+ i))))

(define seen (make-bitvector n #f))
(define came-back 0)
(define (drain)
  (let loop ((object (guardian)))
    (when object
      (unless (eq? 'dropped (vector-ref object 0))
        (error "a live object came out of the guardian" object))
      (let ((i (vector-ref object 1)))
        (unless (string=? (number->string i) (vector-ref object 2))
          (error "damaged" object))
        (when (bitvector-bit-set? seen i)
          (error "came out twice" i))
        (bitvector-set-bit! seen i)
        (set! came-back (1+ came-back)))
      (loop (guardian)))))

;; Guile's finalizer thread fills the guardian; give it time, within reason.
(let wait ((tries 0))
  (collect)
  (drain)
  (unless (or (most? came-back n) (= tries 100))
    (usleep 20000)
    (wait (1+ tries))))
(say "guardian, dropped objects" (most? came-back n))
(say "guardian, kept objects"
     (every (lambda (v i) (and (eq? 'kept (vector-ref v 0)) (= i (vector-ref v 1)))) kept (iota 100)))

;; hash-count doesn't take weak tables.
(define (entries table) (hash-fold (lambda (key value sum) (1+ sum)) 0 table))

;; Weak tables. Half of the keys (values) stay referenced.
(define (check-table what make fill)
  (let* ((table (make))
         (live (map (lambda (i) (list 'live i)) (iota n))))
    (fill table live)
    (let wait ((tries 0))
      (collect)
      (let ((left (entries table)))
        (unless (or (<= left (+ n (quotient n 10))) (= tries 50))
          (usleep 10000)
          (wait (1+ tries)))))
    (let ((left (entries table)))
      (say (string-append what ", dropped entries") (<= left (+ n (quotient n 10))))
      (say (string-append what ", live entries") (>= left n)))
    (say (string-append what ", contents")
         (every (lambda (key i) (equal? key (list 'live i))) live (iota n)))))

(check-table "weak keys" make-weak-key-hash-table
             (lambda (table live)
               (for-each (lambda (key) (hashq-set! table key (number->string (cadr key)))) live)
               (for-each (lambda (i) (hashq-set! table (list 'dead i) i)) (iota n))))
(check-table "weak values" make-weak-value-hash-table
             (lambda (table live)
               (for-each (lambda (value) (hashv-set! table (cadr value) value)) live)
               (for-each (lambda (i) (hashv-set! table (+ n i) (list 'dead i))) (iota n))))
(check-table "doubly weak" make-doubly-weak-hash-table
             (lambda (table live)
               (for-each (lambda (key) (hashq-set! table key key)) live)
               (for-each (lambda (i) (hashq-set! table (list 'dead i) (list 'dead i))) (iota n))))

;; A weak vector.
(define live-strings (map number->string (iota n)))
(define weak (make-weak-vector (* 2 n) #f))
(for-each (lambda (s i)
            (weak-vector-set! weak (* 2 i) s)
            (weak-vector-set! weak (1+ (* 2 i)) (string-append "dead " s)))
          live-strings (iota n))
(collect)
(say "weak vector, live"
     (every (lambda (s i) (eq? s (weak-vector-ref weak (* 2 i)))) live-strings (iota n)))
(say "weak vector, dropped"
     (most? (count (lambda (i) (not (weak-vector-ref weak (1+ (* 2 i))))) (iota n)) n))

;; Churn: a weak table that lives through many collections while entries come and go.
(define cache (make-weak-key-hash-table))
(define (use-cache rounds)
  (let loop ((i 0) (sum 0) (recent '()))
    (if (= i rounds)
        sum
        (let ((key (list i)))
          (hashq-set! cache key (* 2 i))
          (loop (1+ i)
                (+ sum (hashq-ref cache key))
                (cons key (if (< (length recent) 8) recent (list-head recent 7))))))))
(format #t "cache: ~d~%" (use-cache (* 20 n)))
