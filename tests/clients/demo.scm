;; The program of `./dev demo`: three things that Scheme programs do all day.
;;
;;  1. Symbolic algebra: differentiates an expression again and again, simplifies and evaluates it.
;;  2. An interpreter for a small Lisp, which runs a queens program of its own; environments are
;;     association lists, so every variable and every call is made of fresh pairs.
;;  3. Trees: keeps an ordered set in a persistent balanced tree, every insertion a new version,
;;     with a window of old versions alive.
;;
;; Argument: the amount of work. The output depends on nothing else.
(use-modules (ice-9 format) (ice-9 match) (srfi srfi-1) (srfi srfi-9))

(define work (string->number (cadr (command-line))))

;;; 1. Symbolic algebra.

(define (differentiate e)
  (match e
    ((? number?) 0)
    ('x 1)
    (('+ a b) `(+ ,(differentiate a) ,(differentiate b)))
    (('* a b) `(+ (* ,(differentiate a) ,b) (* ,a ,(differentiate b))))
    (('expt a n) `(* (* ,n (expt ,a ,(1- n))) ,(differentiate a)))))

(define (simplify e)
  (match e
    ((op a b)
     (match (list op (simplify a) (simplify b))
       (('+ (? number? a) (? number? b)) (+ a b))
       (('* (? number? a) (? number? b)) (* a b))
       (('+ 0 b) b)
       (('+ a 0) a)
       (('* 0 b) 0)
       (('* a 0) 0)
       (('* 1 b) b)
       (('* a 1) a)
       (('expt a 0) 1)
       (('expt a 1) a)
       (simpler simpler)))
    (_ e)))

(define (evaluate-at e x)
  (match e
    ((? number?) e)
    ('x x)
    (('+ a b) (+ (evaluate-at a x) (evaluate-at b x)))
    (('* a b) (* (evaluate-at a x) (evaluate-at b x)))
    (('expt a n) (expt (evaluate-at a x) n))))

(define (size e) (if (pair? e) (fold + 1 (map size (cdr e))) 1))

(define (algebra rounds)
  (define polynomial
    '(* (expt (+ (* 3 (expt x 5)) (* 2 x)) 4) (* (expt (+ x 7) 6) (+ (expt x 3) (* 5 x)))))
  (do ((round 0 (1+ round)))
      ((= round rounds))
    (let loop ((order 0) (e polynomial))
      (cond ((< order 4) (loop (1+ order) (simplify (differentiate e))))
            ((= round (1- rounds))
             (format #t "algebra: derivative ~d has ~d parts and is ~d at 2~%"
                     order (size e) (evaluate-at e 2)))))))

;;; 2. An interpreter.

(define (lookup name env)
  (match (assq name env)
    ((_ . box) (vector-ref box 0))
    (#f (error "unbound" name))))

(define (bind names values env)
  (fold (lambda (name value env) (acons name (vector value) env)) env names values))

(define (evaluate e env)
  (match e
    ((? symbol?) (lookup e env))
    ((? pair?)
     (match e
       (('quote value) value)
       (('if test then else) (evaluate (if (evaluate test env) then else) env))
       (('lambda names body)
        (lambda values (evaluate body (bind names values env))))
       (('letrec ((names values) ...) body)
        (let ((inner (bind names (map (const #f) names) env)))
          (for-each (lambda (name value)
                      (vector-set! (cdr (assq name inner)) 0 (evaluate value inner)))
                    names values)
          (evaluate body inner)))
       ((function . arguments)
        (apply (evaluate function env) (map (lambda (a) (evaluate a env)) arguments)))))
    (_ e)))

(define primitives
  (bind '(+ - = null? cons car cdr abs list)
        (list + - = null? cons car cdr abs list)
        '()))

;; Counts the ways to place n queens, as a program for the interpreter.
(define queens
  '(letrec ((safe (lambda (column distance others)
                    (if (null? others)
                        #t
                        (if (= column (car others))
                            #f
                            (if (= (abs (- column (car others))) distance)
                                #f
                                (safe column (+ distance 1) (cdr others)))))))
            (try (lambda (column n rest placed)
                   (if (= column 0)
                       0
                       (+ (if (safe column 1 placed)
                              (place n (- rest 1) (cons column placed))
                              0)
                          (try (- column 1) n rest placed)))))
            (place (lambda (n rest placed)
                     (if (= rest 0) 1 (try n n rest placed)))))
     place))

(define (interpreter rounds)
  (define place (evaluate queens primitives))
  (let loop ((round 1) (total 0))
    (if (<= round rounds)
        (loop (1+ round) (+ total (place 6 6 '())))
        (format #t "interpreter: ~d solutions in ~d rounds of 6 queens~%" total rounds))))

;;; 3. Persistent balanced trees (AVL).

(define-record-type <node>
  (make-node height left key right)
  node?
  (height node-height)
  (left node-left)
  (key node-key)
  (right node-right))

(define (height tree) (if tree (node-height tree) 0))
(define (node left key right) (make-node (1+ (max (height left) (height right))) left key right))

(define (balanced left key right)
  (cond ((> (height left) (1+ (height right)))
         (let ((l left))
           (if (>= (height (node-left l)) (height (node-right l)))
               (node (node-left l) (node-key l) (node (node-right l) key right))
               (let ((m (node-right l)))
                 (node (node (node-left l) (node-key l) (node-left m))
                       (node-key m)
                       (node (node-right m) key right))))))
        ((> (height right) (1+ (height left)))
         (let ((r right))
           (if (>= (height (node-right r)) (height (node-left r)))
               (node (node left key (node-left r)) (node-key r) (node-right r))
               (let ((m (node-left r)))
                 (node (node left key (node-left m))
                       (node-key m)
                       (node (node-right m) (node-key r) (node-right r)))))))
        (else (node left key right))))

(define (insert tree key)
  (cond ((not tree) (node #f key #f))
        ((< key (node-key tree))
         (balanced (insert (node-left tree) key) (node-key tree) (node-right tree)))
        ((> key (node-key tree))
         (balanced (node-left tree) (node-key tree) (insert (node-right tree) key)))
        (else tree)))

(define (count-nodes tree)
  (if tree (+ 1 (count-nodes (node-left tree)) (count-nodes (node-right tree))) 0))

(define (trees insertions)
  (define versions (make-vector 64 #f))
  (let loop ((i 0) (seed 1) (tree #f))
    (if (< i insertions)
        (let ((tree (insert tree (quotient seed 8))))
          (vector-set! versions (modulo i 64) tree)
          (loop (1+ i) (modulo (+ (* seed 1103515245) 12345) 2147483648) tree))
        (format #t "trees: ~d keys, height ~d, oldest version kept has ~d~%"
                (count-nodes tree) (height tree)
                (count-nodes (vector-ref versions (modulo i 64)))))))

(algebra (* 2 work))
(interpreter work)
(trees (* 5000 work))
