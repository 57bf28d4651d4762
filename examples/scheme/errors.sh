#!/usr/bin/env bash
# errors.sh SCHEMEC PRELUDE: programs that are no programs, and what the compiler says of them.
set -euo pipefail

schemec=$1
prelude=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# refused MESSAGE PROGRAM
refused() {
  local message
  printf '%s\n' "$2" >"$folder/program.scm"
  if message=$("$schemec" "$prelude" "$folder/program.scm" "$folder/program.c" 2>&1); then
    echo "not refused: ${2:0:200}" && exit 1
  fi
  if [[ $message != *"$1"* ]]; then
    echo "${2:0:200}: expected '$1', got: $message" && exit 1
  fi
}

refused "the text ends inside of a list" "(display (+ 1 2)"
refused "line 2: nothing is called y" $'(define x 1)\n(display y)'
refused "wrong number of arguments for f" "(define (f x) x) (f 1 2)"
refused "wrong number of arguments for next" "(let next ((i 0)) (if (= i 3) i (next)))"
refused "car takes 1 arguments" "(car)"
refused "too large for a fixnum" "(display 2305843009213693952)"
refused "more than 8 parameters" "(define (f a b c d e f g h i) a)"
refused "more than 8 arguments" "(define (f g) (g 1 2 3 4 5 6 7 8 9)) (f f)"
refused "line 2: 1e400 is too large for a flonum" $'(define x 1)\n(display 1e400)'
refused "line 2: -1e999 is too large for a flonum" $'(define x 1)\n(display -1e999)'
refused "line 2: a dot cannot stand here" $'(define x 1)\n(display \'(. 2))'
refused "line 1: a dot cannot stand here" "(display '#(1 2 . 3))"
refused "line 1: a dot cannot stand here" "(display '(1 . . 2))"
refused "line 1: a dot cannot stand here" "(display '.)"
refused "more than one datum after a dot" "(display '(1 . 2 3))"

# times COUNT TEXT
times() {
  awk -v count="$1" -v text="$2" 'BEGIN { while (count-- > 0) printf "%s", text }'
}
refused "line 1: nested too deeply" "$(times 100000 "(")"
refused "line 1: nested too deeply" "(display $(times 100000 "'")x)"
refused "line 1: nested too deeply" "$(times 100000 "(let ((x 1)) ")"
# Forms whose parts are expressions within one another.
refused "line 1: nested too deeply" "(display (+ $(times 100000 "1 ")))"
refused "line 1: nested too deeply" "(display (cond $(times 100000 "((newline) 1) ")))"
refused "line 1: nested too deeply" "(display (or $(times 100000 "(display 1) ")))"
refused "line 1: nested too deeply" "(let* ($(times 100000 "(x 1) ")) x)"
refused "line 1: nested too deeply" "(define (f) $(times 10000 "(define x 1) ") x)"

refused "define cannot stand here" "(display (define x 1))"
refused "a body without an expression" "(define (f) (define x 1))"
