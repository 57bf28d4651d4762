#!/usr/bin/env bash
# What `./dev demo` runs: gets Guile, then leaves the rest to demo.py.
set -euo pipefail
unset CDPATH # cd would look there first
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=scripts/packages.sh
source "$here/../../scripts/packages.sh"
need_debian guile-3.0 python3 g++
exec python3 "$here/demo.py" "$@"
