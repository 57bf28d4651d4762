; the result is too large for a fixnum
(display (/ -2305843009213693952 -1))
