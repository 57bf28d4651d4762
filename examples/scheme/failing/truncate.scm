; too large for a fixnum
(display (truncate->exact 2305843009213693952.0))
