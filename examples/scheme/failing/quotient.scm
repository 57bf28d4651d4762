; the result is too large for a fixnum
(display (quotient -2305843009213693952 -1))
