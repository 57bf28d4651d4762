#!/usr/bin/env bash
# fails.sh PROGRAM SOURCE: runs the program; it is to fail, with what its source's first line says on
# standard error.
set -euo pipefail

expected=$(head -1 "$2")
if said=$("$1" 2>&1 >/dev/null); then
  echo "it did not fail" && exit 1
fi
if [[ $said != *"${expected#; }"* ]]; then
  echo "expected '${expected#; }', got: $said" && exit 1
fi
