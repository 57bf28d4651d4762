; Counts the words of a text that is made up, in a hash table of strings; then symbols, and a table
; by identity whose keys move.

(define seed 42)
(define (random n)
  (set! seed (modulo (+ (* seed 69069) 5) 4294967296))
  (modulo (quotient seed 65536) n))

(define syllables '#("ka" "do" "mi" "ra" "ne" "so" "tu"))
(define (word)
  (let next ((n (+ 1 (random 2))) (text ""))
    (if (= n 0)
        text
        (next (- n 1) (string-append text (vector-ref syllables (random 7)))))))

(define (text n)
  (let next ((n n) (parts '()))
    (if (= n 0)
        (join (reverse parts))
        (next (- n 1) (cons (word) parts)))))
(define (join words)
  (if (null? (cdr words))
      (car words)
      (let ((half (quotient (length words) 2)))
        (let split ((n half) (front '()) (rest words))
          (if (= n 0)
              (string-append (join (reverse front)) " " (join rest))
              (split (- n 1) (cons (car rest) front) (cdr rest)))))))

(define (words text)
  (let next ((i 0) (begin 0) (found '()))
    (cond ((= i (string-length text)) (reverse (cons (substring text begin i) found)))
          ((char=? (string-ref text i) #\space)
           (next (+ i 1) (+ i 1) (cons (substring text begin i) found)))
          (else (next (+ i 1) begin found)))))

(define (count-words words)
  (let ((table (make-table)))
    (for-each (lambda (word) (table-set! table word (+ 1 (table-ref table word 0)))) words)
    table))

(define all (words (text 1500)))
(define counts (count-words all))
(define by-count
  (sort (table->list counts)
        (lambda (a b)
          (or (> (cdr a) (cdr b))
              (and (= (cdr a) (cdr b)) (string<? (car a) (car b)))))))
(display (list (length all) (table-count counts) (fold-left + 0 (map cdr by-count))))
(newline)
(let next ((n 0) (pairs by-count))
  (when (< n 8)
    (write (car pairs))
    (newline)
    (next (+ n 1) (cdr pairs))))

; The same symbol for the same word, wherever the first one has gone to.
(define symbols (map string->symbol all))
(define again (map (lambda (word) (string->symbol (string-append "" word))) all))
(display (let next ((a symbols) (b again))
           (or (null? a) (and (eq? (car a) (car b)) (next (cdr a) (cdr b))))))
(newline)

; Keys that are the same but not identical.
(define keys (map (lambda (i) (list 'key)) (iota 200)))
(define places (make-eq-table))
(let next ((keys keys) (i 0))
  (unless (null? keys)
    (table-set! places (car keys) i)
    (next (cdr keys) (+ i 1))))
(collect)
(display (list (table-count places) (map (lambda (key) (table-ref places key #f)) (list-tail keys 195))
               (table-ref places (list 'key) 'none)))
(newline)
