#!/bin/sh
# What `./dev clients` runs; everything is in run.py.
command -v python3 >/dev/null || {
  echo "clients: needs Python 3: apt-get install python3" >&2
  exit 2
}
exec python3 "$(dirname "$0")/run.py" "$@"
