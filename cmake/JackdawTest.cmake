# jackdaw_test(<name>
#   SOURCES a.cpp ...            # GoogleTest sources; main() comes from gtest_main
#   [LIBRARIES target ...]       # more to link
#   [LINK internal|gc|none]      # internal (default): libjackdaw.a and the private headers
#                                # gc: the shared libgc.so.1 and the public headers
#   [LABELS label ...] [TIMEOUT seconds] [ENVIRONMENT VAR=value ...])
#
# Builds bin/<name> and registers each of its test cases with ctest as <name>.<case>.

include(GoogleTest)

# The collector reads what AddressSanitizer would rather have on a fake stack, and what it keeps
# alive looks leaked. The same settings are compiled into each test (tests/support/), so that a
# test run by hand behaves as under ctest; they are here for programs with a main() of their own.
set(JD_TEST_ENVIRONMENT
  "ASAN_OPTIONS=detect_stack_use_after_return=0:detect_leaks=0:abort_on_error=1"
  "UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1"
  "TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1")

function(jackdaw_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "LINK;TIMEOUT" "SOURCES;LIBRARIES;LABELS;ENVIRONMENT")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "jackdaw_test(${name}): unknown arguments ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_LINK)
    set(arg_LINK internal)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  if(arg_LINK STREQUAL "internal")
    set(library jackdaw_internal)
  elseif(arg_LINK STREQUAL "gc")
    set(library gc)
  elseif(arg_LINK STREQUAL "none")
    set(library "")
  else()
    message(FATAL_ERROR "jackdaw_test(${name}): LINK is internal, gc or none, not ${arg_LINK}")
  endif()

  add_executable(${name} ${arg_SOURCES}
    "${PROJECT_SOURCE_DIR}/tests/support/sanitizer_options.cpp")
  target_link_libraries(${name} PRIVATE
    ${library} ${arg_LIBRARIES} jackdaw_warnings GTest::gmock GTest::gtest_main)
  jackdaw_discover(${name} PREFIX "${name}." TIMEOUT ${arg_TIMEOUT}
    LABELS ${arg_LABELS} ENVIRONMENT ${arg_ENVIRONMENT})
endfunction()

# jackdaw_discover(<target> PREFIX text [FILTER gtest-filter] [TIMEOUT seconds]
#   [LABELS label ...] [ENVIRONMENT VAR=value ...])
#
# Registers each case of a GoogleTest program with ctest as <prefix><case>. A program may be
# registered several times, each with a prefix of its own.
#
# Labels and environment are lists. gtest_discover_tests() flattens the lists among its PROPERTIES,
# so that of three variables only the first would be set and the others be taken for properties;
# they are therefore set by a file that ctest reads after the list of cases.
function(jackdaw_discover target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "PREFIX;FILTER;TIMEOUT" "LABELS;ENVIRONMENT")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_PREFIX)
    message(FATAL_ERROR "jackdaw_discover(${target}): PREFIX is missing, or these are unknown: "
      "${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  if(CMAKE_CROSSCOMPILING) # then it runs in an emulator
    math(EXPR arg_TIMEOUT "4 * ${arg_TIMEOUT}")
  endif()
  foreach(variable IN LISTS arg_ENVIRONMENT)
    if(NOT variable MATCHES "^[A-Za-z_][A-Za-z_0-9]*=")
      message(FATAL_ERROR "jackdaw_discover(${target}): ENVIRONMENT has '${variable}', "
        "which is not VAR=value")
    endif()
  endforeach()
  set(filter "")
  if(arg_FILTER)
    set(filter TEST_FILTER "${arg_FILTER}")
  endif()
  string(MAKE_C_IDENTIFIER "${arg_PREFIX}cases" cases)
  gtest_discover_tests(${target}
    TEST_PREFIX "${arg_PREFIX}"
    TEST_LIST ${cases}
    ${filter}
    NO_PRETTY_TYPES
    NO_PRETTY_VALUES # some values are printed as bytes, and differ from run to run
    DISCOVERY_MODE PRE_TEST
    DISCOVERY_TIMEOUT 60
    PROPERTIES TIMEOUT ${arg_TIMEOUT})

  set(properties "${CMAKE_CURRENT_BINARY_DIR}/${cases}.cmake")
  file(WRITE "${properties}"
    "foreach(case IN LISTS ${cases})\n"
    "  set_tests_properties(\"\${case}\" PROPERTIES\n"
    "    LABELS [==[${arg_LABELS}]==]\n"
    "    ENVIRONMENT [==[${JD_TEST_ENVIRONMENT};${arg_ENVIRONMENT}]==])\n"
    "endforeach()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${properties}")
endfunction()

# Tests of compilers on public headers tell the same of every preset, and take minutes: they are there
# where the collector's checks are not, in release.
set(jd_tests_of_headers ON)
if(JD_DEBUG_CHECKS OR JD_SANITIZER)
  set(jd_tests_of_headers OFF)
  message(STATUS "tests that only compile public headers are left out: they are release's")
endif()

# One test a compiler and language level, of a script that compiles public headers
# (tests/support/headers.sh). Exit status 77, for a compiler that is not installed, is ctest's
# "skipped".
#
# jackdaw_header_tests(<prefix> <script> [<another C++ standard>])
function(jackdaw_header_tests prefix script)
  if(NOT jd_tests_of_headers)
    return()
  endif()
  foreach(compiler IN ITEMS gcc g++ clang clang++)
    if(compiler MATCHES "\\+\\+$")
      set(levels ${ARGN} c++17 c++20)
    else()
      set(levels c99 c11)
    endif()
    foreach(level IN LISTS levels)
      add_test(NAME ${prefix}.${compiler}.${level} COMMAND "${script}" ${compiler} ${level})
      set_tests_properties(${prefix}.${compiler}.${level} PROPERTIES
        SKIP_RETURN_CODE 77 TIMEOUT 300)
    endforeach()
  endforeach()
endfunction()
