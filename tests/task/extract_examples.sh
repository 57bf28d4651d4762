#!/usr/bin/env bash
# extract_examples.sh LANGUAGE PAGE.md: the page's code blocks of that language, one after the other, as
# one source file whose lines are counted as in the page.
set -euo pipefail
awk -v language="$1" -v page="$2" '
  $0 == "```" language { inside = 1; printf "#line %d \"%s\"\n", NR + 1, page; next }
  /^```/ { inside = 0 }
  inside { print; found = 1 }
  END { exit !found }
' "$2"
