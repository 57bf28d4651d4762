;; Text: makes pseudo-random words, interns some as symbols, counts them in hash tables, joins, splits and
;; sorts them. Argument: how many words.
(use-modules (ice-9 format) (srfi srfi-1) (srfi srfi-13))

(define how-many (string->number (cadr (command-line))))

;; A generator of our own, so that the result doesn't depend on Guile's.
(define seed 20260101)
(define (draw n)
  (set! seed (modulo (+ (* seed 1103515245) 12345) 2147483648))
  (modulo (quotient seed 65536) n))

(define syllables
  (vector "ka" "lo" "mi" "ne" "ru" "sa" "to" "vi" "wa" "xe" "yu" "zo" "β" "é"))

(define (random-word)
  (string-concatenate
   (map (lambda (_) (vector-ref syllables (draw (vector-length syllables))))
        (iota (+ 2 (draw 3))))))

(define counts (make-hash-table))
(define by-symbol (make-hash-table))
(define lengths 0)

(do ((i 0 (1+ i)))
    ((= i how-many))
  (let ((word (random-word)))
    (set! lengths (+ lengths (string-length word)))
    (hash-set! counts word (1+ (hash-ref counts word 0)))
    (hashq-set! by-symbol (string->symbol word) i)))

(format #t "characters: ~d~%" lengths)
(format #t "distinct: ~d words, ~d symbols~%"
        (hash-count (const #t) counts) (hash-count (const #t) by-symbol))

(define ranking
  (sort (hash-map->list cons counts)
        (lambda (a b)
          (or (> (cdr a) (cdr b))
              (and (= (cdr a) (cdr b)) (string<? (car a) (car b)))))))

(for-each (lambda (entry) (format #t "~a ~a~%" (car entry) (cdr entry)))
          (list-head ranking (min 10 (length ranking))))

;; Long strings, made and taken apart again.
(define rounds (quotient how-many 5000))
(define (checksum str)
  (string-fold (lambda (c acc) (modulo (+ (* acc 31) (char->integer c)) 1000000007)) 7 str))

(let loop ((i 0) (acc 0))
  (if (< i rounds)
      (let* ((words (map (lambda (_) (random-word)) (iota 400)))
             (line (string-join words " "))
             (again (string-tokenize (string-upcase line))))
        (loop (1+ i)
              (modulo (+ acc (checksum (string-join (reverse again) "-"))) 1000000007)))
      (format #t "lines: ~d~%" acc)))
