#!/usr/bin/env bash
# ./dev's face: what it lists, what it says to nonsense, and that every command has a help that
# does nothing else.
set -euo pipefail
# shellcheck source=tests/scripts/expect.sh
source "$(dirname "${BASH_SOURCE[0]}")/expect.sh"

dev=$repo/dev

expect 0 "usage: ./dev COMMAND" "$dev"
expect 0 "usage: ./dev COMMAND" "$dev" --help
expect 2 "no command 'dance'" "$dev" dance
commands=$("$dev" | sed -n 's/^  \([a-z-]*\)  .*/\1/p')
for command in build test stress fuzz demo clients bench format lint install-deps clean; do
  expect 0 "$command" echo "$commands"
  expect 0 "usage: ./dev $command" "$dev" "$command" --help
done
expect 2 "no preset 'fast'" "$dev" test --preset fast
expect 2 "--compiler is gcc or clang, not 'icc'" "$dev" build --compiler icc
expect 2 "unknown option --wat" "$dev" test --wat
expect 2 "dev: --preset needs a name" "$dev" test --preset
expect 2 "dev: --compiler needs gcc or clang" "$dev" build --compiler
expect 2 "no program 'wine'" "$dev" fuzz wine
expect 2 "a number of seconds, not 'soon'" "$dev" fuzz --seconds=soon
expect 2 "format takes no arguments" "$dev" format --wat
expect 2 "one filter" "$dev" test a b
expect 2 "no package group 'wine'" "$dev" install-deps wine

# Regression: with an exported CDPATH it went to another checkout, whose build/ it removed.
for checkout in one/checkout other/checkout; do
  mkdir -p "$scratch/$checkout/build"
  cp -r "$repo/dev" "$repo/scripts" "$scratch/$checkout"
done
# in_one CDPATH COMMAND...: with the scratch folder's one/ as the current folder.
in_one() {
  (cd "$scratch/one" && CDPATH=$1 "${@:2}")
}
expect 0 "" in_one "$scratch/other" checkout/dev clean
expect 0 "build" ls "$scratch/other/checkout"
expect 1 "" test -e "$scratch/one/checkout/build"

# Regression: called through a link it took the link's folder for the checkout.
mkdir "$scratch/bin" "$scratch/one/checkout/build"
ln -s ../one/checkout/dev "$scratch/bin/jackdaw-dev"
expect 0 "usage: ./dev build" "$scratch/bin/jackdaw-dev" build --help
expect 0 "" "$scratch/bin/jackdaw-dev" clean
expect 1 "" test -e "$scratch/one/checkout/build"

# --- with stand-ins for what it calls ------------------------------------------------------------

# cmake notes with which compilers it configures, and hands on what is no build; ctest writes the
# report that is laid ready for it.
cmake=$(command -v cmake)
write bin/cmake <<END
#!/bin/sh
case " \$* " in
  *" -P "*) exec "$cmake" "\$@" ;;
  *" --preset "*)
    echo "configured: CC=\$CC CXX=\$CXX \$*" >>"$scratch/configured"
    touch build/release/CMakeCache.txt
    ;;
esac
END
write bin/ctest <<END
#!/bin/sh
while [ "\$1" != --output-junit ]; do shift; done
[ ! -e "$scratch/report.xml" ] || cp "$scratch/report.xml" "\$2"
[ ! -e "$scratch/failing" ]
END
write bin/dpkg-query <<END
#!/bin/sh
printf 'ii '
END
chmod +x "$scratch"/bin/*
in_scratch() {
  env -u CC -u CXX PATH="$scratch/bin:$PATH" "$@"
}
dev_in_scratch() {
  in_scratch "$scratch/one/checkout/dev" "$@"
}

# As ctest 3.25 writes it.
write report.xml <<'END'
<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="(empty)"
	tests="8"
	failures="1"
	disabled="1"
	skipped="4"
	>
	<testcase name="passes" classname="passes" time="0.009" status="run">
		<system-out>tests=&quot;99&quot; &lt;skipped message=&quot;</system-out>
	</testcase>
	<testcase name="passes too" classname="passes too" time="0.009" status="run">
		<system-out></system-out>
	</testcase>
	<testcase name="fails" classname="fails" time="0.008" status="fail">
		<failure message=""/>
		<system-out>what it said</system-out>
	</testcase>
	<testcase name="lacks its program" classname="lacks" time="0" status="notrun">
		<skipped message="Unable to find executable"/>
		<system-out>Unable to find executable: /nowhere/program</system-out>
	</testcase>
	<testcase name="lacks a file" classname="lacks" time="0" status="notrun">
		<skipped message="Required Files Missing"/>
		<system-out>Unable to find required file: /nowhere/file</system-out>
	</testcase>
	<testcase name="skips" classname="skips" time="0.009" status="notrun">
		<skipped message="SKIP_RETURN_CODE=77"/>
		<system-out></system-out>
	</testcase>
	<testcase name="skips in words" classname="skips" time="0.02" status="notrun">
		<skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>
		<system-out>Skipped</system-out>
	</testcase>
	<testcase name="off" classname="off" time="0" status="disabled">
		<system-out>Disabled</system-out>
	</testcase>
</testsuite>
END
expect 1 "2 passed, 3 failed, 3 skipped" dev_in_scratch test --preset release
expect 1 "FAILED: fails, after 0.0 s
    what it said" dev_in_scratch test --preset release
expect 1 "FAILED: lacks its program, not run
    Unable to find executable: /nowhere/program" dev_in_scratch test --preset release
# Two reports, of release and debug.
expect 1 "4 passed, 6 failed, 6 skipped" dev_in_scratch test

write report.xml <<'END'
<testsuite tests="0" failures="0" disabled="0" skipped="0">
</testsuite>
END
expect 0 "0 passed, 0 failed, 0 skipped" dev_in_scratch test
for command in test stress; do
  expect 1 "0 skipped
dev: no test has a name that matches 'nothing'" dev_in_scratch "$command" nothing
  expect 2 "dev: '(' is no regular expression" dev_in_scratch "$command" '('
done
expect_without "ctest reported" dev_in_scratch test nothing
touch "$scratch/failing"
expect 1 "dev: ctest reported an error (above) although no test failed" dev_in_scratch test
rm "$scratch/failing" "$scratch/report.xml"

# configured_afresh NO|YES VARIABLES...: by ./dev build with these in the environment.
configured_afresh() {
  local want=$1 status=0
  shift
  rm -f "$scratch/configured"
  in_scratch env "$@" "$scratch/one/checkout/dev" build >/dev/null
  grep -q -- --fresh "$scratch/configured" || status=1
  [[ $want == YES ]] || status=$((1 - status))
  cat "$scratch/configured"
  return "$status"
}
rm -r "$scratch/one/checkout/build"
# Regression: a folder kept the compiler of an earlier CC and CXX.
expect 0 "CC=clang-16 CXX=clang++-16" configured_afresh NO CC=clang-16 CXX=clang++-16
expect 0 "" configured_afresh NO CC=clang-16 CXX=clang++-16
expect 0 "CC= CXX=" configured_afresh YES
expect 0 "" configured_afresh NO
# Regression: CC alone was ignored.
expect 0 "CC=gcc-12 CXX=" configured_afresh YES CC=gcc-12
expect 0 "" configured_afresh NO CC=gcc-12
# One that was configured by hand stays as it is, unless something else is asked for.
rm -f "$scratch/one/checkout/build/release/.compilers"
echo "CMAKE_CXX_COMPILER:FILEPATH=/nowhere/c++" >"$scratch/one/checkout/build/release/CMakeCache.txt"
expect 0 "" configured_afresh NO
rm -f "$scratch/one/checkout/build/release/.compilers"
expect 0 "" configured_afresh YES CXX=g++

# So with every script that goes to where it lies, or to a folder it is told.
# shellcheck disable=SC2016 # a regular expression
goes='(^|[ (])cd "\$(\{1:-|\(dirname|root)'
while IFS= read -r script; do
  expect 0 "unset CDPATH" grep "^unset CDPATH" "$script"
done < <(grep -rlE "$goes" "$repo/dev" "$repo/scripts" "$repo/.ci" "$repo/tools/jackdaw/update-docs" \
  "$repo/tests" --include='*.sh' --include=dev --include='check-*' --include=lint --include=fetch-peers \
  --include=run --include=update-docs)

expect_finish
