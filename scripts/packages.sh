# shellcheck shell=bash
# Debian packages that ./dev needs, by group, and how they get onto the machine.
# Sourced by ./dev and by any script of ours that has to install something:
#
#   need_packages build test     # groups
#   need_debian guile-3.0 ecl    # packages by name
#
# Both return at once when nothing is missing. Otherwise they install what is missing when they
# may (as root, or with a sudo that asks no password); when they may not, they print the one line
# to run and return 1.

unset CDPATH # cd would look there first
# The root of the checkout; this file is in its scripts/.
packages_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# Prints the packages of one group, one a line.
packages_in_group() {
  case $1 in
    build) printf '%s\n' g++ cmake ninja-build ;;
    clang) printf '%s\n' clang-16 cmake ninja-build libclang-rt-16-dev ;;
    test)
      printf '%s\n' libgtest-dev libgmock-dev clang-format-16 shellcheck libgc-dev binutils pkg-config gnuplot-nox valgrind
      printf '%s\n' ghostscript python3 sqlite3 # run on our malloc, in tests/malloc
      ;;
    tools) printf '%s\n' libcli11-dev libfmt-dev nlohmann-json3-dev ;;
    bench) printf '%s\n' libgc1 libmimalloc2.0 ;;
    peers) printf '%s\n' libtbb-dev gnuplot-nox ;; # of jackdaw bench work-stealing
    reports) printf '%s\n' ghostscript gnuplot-nox valgrind ;;
    aarch64) printf '%s\n' g++-aarch64-linux-gnu googletest qemu-user-static binfmt-support ;;
    format) printf '%s\n' clang-format-16 ;;
    lint) printf '%s\n' clang-tidy-16 clang-16 cmake ninja-build ;;
    few-clients) printf '%s\n' guile-3.0 w3m ;; # for continuous integration
    clients)
      local list=$packages_root/tests/clients/packages.txt
      if [[ -f $list ]]; then
        sed -e 's/#.*//' -e 's/[[:space:]]*$//' "$list" | grep -v '^$' || true
      fi
      ;;
    *)
      echo "no package group '$1' (groups: $(package_groups | tr '\n' ' '))" >&2
      return 2
      ;;
  esac
}

package_groups() {
  printf '%s\n' build clang test tools bench peers reports aarch64 format lint few-clients clients
}

need_packages() {
  local group wanted=() names
  for group in "$@"; do
    names=$(packages_in_group "$group") || return
    # Package names hold no blanks.
    # shellcheck disable=SC2206
    wanted+=($names)
  done
  need_debian "${wanted[@]}"
}

# need_each_of GROUP: one package that cannot be had does not keep the others of the group away.
need_each_of() {
  local name names failed=0
  names=$(packages_in_group "$1") || return
  # shellcheck disable=SC2086
  need_debian $names && return
  may_install || return 1
  for name in $names; do
    need_debian "$name" || failed=1
  done
  return $failed
}

may_install() {
  ((EUID == 0)) || sudo -n true 2>/dev/null
}

need_debian() {
  local missing=() name
  if ! command -v dpkg-query >/dev/null; then
    return 0 # Not a Debian system: whoever runs us provides the tools, and CMake says what lacks.
  fi
  for name in $(printf '%s\n' "$@" | sort -u); do
    package_is_installed "$name" || missing+=("$name")
  done
  if ((${#missing[@]} == 0)); then
    return 0
  fi

  local as_root=()
  if ((EUID != 0)); then
    if may_install; then
      as_root=(sudo -n)
    else
      echo "These Debian packages are missing and you are not root. Run this, then try again:" >&2
      echo "  sudo apt-get install -y --no-install-recommends ${missing[*]}" >&2
      return 1
    fi
  fi
  echo "installing Debian packages: ${missing[*]}"
  apt_install "${missing[@]}" || {
    # Most often the package lists are missing or old.
    echo "refreshing the package lists"
    "${as_root[@]}" apt-get update -q && apt_install "${missing[@]}"
  } || {
    echo "could not install: ${missing[*]}" >&2
    echo "Install them by hand (apt-get install ${missing[*]}), then try again." >&2
    return 1
  }
}

package_is_installed() {
  [[ $(dpkg-query -W -f '${db:Status-Abbrev}' "$1" 2>/dev/null) == ii* ]]
}

# Uses need_debian's as_root.
apt_install() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -q --no-install-recommends "$@"
}
