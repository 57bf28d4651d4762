#!/usr/bin/env bash
# check.sh PROGRAM EXPECTED: runs the program; its output is to be that file's content.
set -euo pipefail

"$1" | diff -u "$2" -
