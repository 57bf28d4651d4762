#!/usr/bin/env bash
# scripts/packages.sh, with stand-ins for the system's commands: installs what is missing and only
# that, refreshes the lists only when an installation fails, and without the right to install says
# which command to run.
set -euo pipefail
# shellcheck source=tests/scripts/expect.sh
source "$(dirname "${BASH_SOURCE[0]}")/expect.sh"

# The stand-ins log what they are asked. `here` is installed, nothing else; apt-get install fails
# until apt-get update was called if $scratch/stale exists.
write bin/dpkg-query <<'END'
#!/bin/sh
for last; do :; done
[ "$last" = here ] && printf 'ii '
END
write bin/apt-get <<'END'
#!/bin/sh
here=$(dirname "$0")/..
echo "apt-get $*" >> "$here/log"
case $1 in
  update) rm -f "$here/stale" ;;
  install) [ ! -e "$here/stale" ] && [ ! -e "$here/offline" ] ;;
esac
END
write bin/sudo <<'END'
#!/bin/sh
here=$(dirname "$0")/..
[ -e "$here/no-sudo" ] && exit 1
shift
exec "$@"
END
chmod +x "$scratch"/bin/*

# need USER-ID PACKAGE...
need() {
  local user=$1
  shift
  rm -f "$scratch/log"
  touch "$scratch/log"
  PATH=$scratch/bin:$PATH bash -c '
    # EUID cannot be set; the script under test is read with a name of ours instead.
    source <(sed "s/EUID/fake_user/; s|dirname \"\${BASH_SOURCE\[0\]}\"|echo $1/scripts|" "$1/scripts/packages.sh")
    fake_user=$2
    shift 2
    need_debian "$@"
  ' need "$repo" "$user" "$@"
}

expect 0 "" need 0 here
expect 0 "" diff /dev/null "$scratch/log"

expect 0 "installing Debian packages: away" need 0 here away
expect 0 "apt-get install -y -q --no-install-recommends away" cat "$scratch/log"
expect 1 "" grep update "$scratch/log"

touch "$scratch/stale"
expect 0 "refreshing the package lists" need 0 away
expect 0 "apt-get update" cat "$scratch/log"

touch "$scratch/offline"
expect 1 "could not install: away" need 0 away
rm "$scratch/offline"

expect 0 "installing Debian packages: away" need 1000 away
touch "$scratch/no-sudo"
expect 1 "sudo apt-get install -y --no-install-recommends away further" need 1000 further here away
expect 0 "" diff /dev/null "$scratch/log"

expect_finish
