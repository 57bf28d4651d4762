#!/usr/bin/env bash
# What the objects of src/base call for: nothing that allocates, locks or calls the system
# (base.req.plain). And which library counts what threads share (base.req.uncounted).
#
#   symbols_test.sh LIBGC COUNTING-LIBGC OBJECTS-OF-BASE...
set -euo pipefail

libgc=$1
counting=$2
shift 2
(($# > 0)) || {
  echo "FAILED: no objects"
  exit 1
}
failures=0

# Of libc, what the compiler itself calls for to copy and compare, and what reads the environment.
allowed='jd::base::.*|mem(cpy|move|set|cmp)|bcmp|str(len|n?cmp)|environ|secure_getenv|_GLOBAL_OFFSET_TABLE_'
called=$(nm -C -u "$@" | sed -n 's/^ *U //p' | sed 's/@.*//' | sort -u)
while IFS= read -r name; do
  [[ $name =~ ^($allowed)$ ]] || {
    echo "FAILED: src/base calls for $name"
    failures=$((failures + 1))
  }
done <<<"$called"
[[ $called == *secure_getenv* ]] || {
  echo "FAILED: these are not the objects that read the options"
  failures=$((failures + 1))
}

counts() {
  nm -C "$1" | grep 'jd::base::note_lock' >/dev/null
}
if counts "$libgc"; then
  echo "FAILED: $libgc counts"
  failures=$((failures + 1))
fi
if [[ -n $counting ]] && ! counts "$counting"; then
  echo "FAILED: $counting does not count"
  failures=$((failures + 1))
fi
((failures == 0))
