# Tests of the collector through its public interface.
#
# jd_gc_test(<name> SOURCES a.cpp ... [LABELS label ...] [TIMEOUT seconds] [STRESS_FILTER filter]
#   [EVERY_FILTER filter])
#
# Builds bin/<name> with the helpers of this folder and registers its cases with ctest as
# <name>.<case>. With our library, the cases that match STRESS_FILTER (default: all) are registered
# again under each stress setting below, with the label `stress`, as <name>@<setting>.<case>; those
# that match EVERY_FILTER (default: none) also with a collection at every allocation.
#
# jd_gc_stress_program(<name> <target> <arguments> ... [ONLY setting ...])
#
# Registers a client of libgc, a program without cases, under each of these settings (those that
# ONLY names, where the others take minutes) in the same way.
#
# -DJD_TEST_PEER=ON links these tests with the system's libgc instead. They must pass there, too,
# which is how they are shown to ask for what libgc's clients may expect.
# Included by each folder: variables are those of the folder.
include(GoogleTest)

option(JD_TEST_PEER "Link the tests of the public interface with the system's libgc" OFF)
set(jd_gc_test_support_dir "${CMAKE_CURRENT_LIST_DIR}")

if(JD_TEST_PEER)
  find_library(JD_PEER_LIBGC NAMES gc REQUIRED)
  find_path(JD_PEER_INCLUDE NAMES gc/gc.h REQUIRED)
endif()

# Most tests' heaps are too small for spans, but where JACKDAW_SPANS says otherwise.
# The default strategy, measured, marks heaps as small as most tests' with grey.
set(JD_GC_STRESS_SETTINGS
  "strategy-ring=JACKDAW_MARK_STRATEGY=ring"
  "strategy-on-grey=JACKDAW_MARK_STRATEGY=on-grey"
  "strategy-none=JACKDAW_MARK_STRATEGY=none"
  "tiny-stack=JACKDAW_MARK_STRATEGY=ring,JACKDAW_MARK_STACK=16"
  "markers=JACKDAW_MARK_STRATEGY=ring,GC_MARKERS=4,JACKDAW_MARK_PATIENCE=1,JACKDAW_SPANS=1"
  "turns-tiny-stack=JACKDAW_MARK_STRATEGY=ring,JACKDAW_MARK_TURN=3,GC_MARKERS=3,JACKDAW_MARK_PATIENCE=1,JACKDAW_MARK_STACK=16"
  "pad=JACKDAW_PAD_OBJECTS=1,JACKDAW_POISON=1"
  "delay=JACKDAW_STOP_DELAY=100"
  "eager=JACKDAW_SWEEP=eager,JACKDAW_NEARLY_FULL=0,JACKDAW_CLEAR_AHEAD=16k,JACKDAW_VERIFY=1"
  "partial=GC_ENABLE_INCREMENTAL=1,JACKDAW_VERIFY=1,JACKDAW_POISON=1,JACKDAW_SPANS=1"
  "partial-tiny-stack=GC_ENABLE_INCREMENTAL=1,JACKDAW_VERIFY=1,JACKDAW_MARK_STRATEGY=ring,GC_MARKERS=3,JACKDAW_MARK_PATIENCE=1,JACKDAW_MARK_STACK=16"
  "steps=GC_ENABLE_INCREMENTAL=1,GC_PAUSE_TIME_TARGET=0,JACKDAW_MARK_TURN=3,JACKDAW_MARK_BESIDE=0,JACKDAW_VERIFY=1,JACKDAW_POISON=1,JACKDAW_SPANS=1"
  "beside=GC_ENABLE_INCREMENTAL=1,GC_PAUSE_TIME_TARGET=0,JACKDAW_MARK_TURN=3,GC_MARKERS=2,JACKDAW_VERIFY=1,JACKDAW_POISON=1,JACKDAW_SPANS=1"
  "checked=JACKDAW_VERIFY=1,JACKDAW_POISON=1,JACKDAW_SPANS=1")
# For EVERY_FILTER's cases only.
set(JD_GC_STRESS_EVERY
  "every=JACKDAW_MARK_STRATEGY=ring,JACKDAW_COLLECT_EVERY=1,JACKDAW_POISON=1,JACKDAW_VERIFY=1,JACKDAW_SPANS=1"
  "every-partial=GC_ENABLE_INCREMENTAL=1,JACKDAW_COLLECT_EVERY=1,JACKDAW_POISON=1,JACKDAW_VERIFY=1"
  "every-step=GC_ENABLE_INCREMENTAL=1,GC_PAUSE_TIME_TARGET=0,JACKDAW_MARK_TURN=3,GC_MARKERS=2,JACKDAW_COLLECT_EVERY=1,JACKDAW_POISON=1,JACKDAW_VERIFY=1,JACKDAW_SPANS=1")

function(jd_gc_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "NO_STRESS" "TIMEOUT;STRESS_FILTER;EVERY_FILTER"
    "SOURCES;LABELS;LIBRARIES")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()

  if(NOT TARGET jd_gc_test_support)
    add_library(jd_gc_test_support STATIC
      "${jd_gc_test_support_dir}/gc_test.cpp"
      "${jd_gc_test_support_dir}/child.cpp"
      "${jd_gc_test_support_dir}/threads.cpp")
    target_include_directories(jd_gc_test_support PUBLIC "${jd_gc_test_support_dir}")
    if(JD_TEST_PEER)
      target_include_directories(jd_gc_test_support SYSTEM PUBLIC "${JD_PEER_INCLUDE}")
      target_link_libraries(jd_gc_test_support PUBLIC "${JD_PEER_LIBGC}")
      target_compile_definitions(jd_gc_test_support PUBLIC JD_TEST_PEER=1)
    else()
      target_link_libraries(jd_gc_test_support PUBLIC gc)
    endif()
    target_link_libraries(jd_gc_test_support PUBLIC jackdaw_warnings GTest::gtest ${CMAKE_DL_LIBS})
    # The data symbols are marked deprecated for clients; a test of them has to name them.
    target_compile_options(jd_gc_test_support PUBLIC -Wno-deprecated-declarations)

    add_library(jd_test_plugin MODULE "${jd_gc_test_support_dir}/plugin.cpp")
    target_link_libraries(jd_test_plugin PRIVATE jackdaw_warnings)
    add_library(jd_test_plugin_early MODULE "${jd_gc_test_support_dir}/plugin.cpp")
    target_link_libraries(jd_test_plugin_early PRIVATE jackdaw_warnings)
    target_compile_definitions(jd_test_plugin_early PRIVATE JD_PLUGIN_EARLY)
    add_library(jd_test_plugin_large MODULE "${jd_gc_test_support_dir}/plugin.cpp")
    target_link_libraries(jd_test_plugin_large PRIVATE jackdaw_warnings)
    target_compile_definitions(jd_test_plugin_large PRIVATE JD_PLUGIN_LARGE)
  endif()

  add_executable(${name} ${arg_SOURCES}
    "${jd_gc_test_support_dir}/gc_test_main.cpp"
    "${jd_gc_test_support_dir}/sanitizer_options.cpp")
  add_dependencies(${name} jd_test_plugin jd_test_plugin_early jd_test_plugin_large)
  target_compile_definitions(${name} PRIVATE
    JD_TEST_PLUGIN="$<TARGET_FILE:jd_test_plugin>"
    JD_TEST_PLUGIN_EARLY="$<TARGET_FILE:jd_test_plugin_early>"
    JD_TEST_PLUGIN_LARGE="$<TARGET_FILE:jd_test_plugin_large>")
  target_link_libraries(${name} PRIVATE jd_gc_test_support ${arg_LIBRARIES})
  # A test's own thread-local and static data have to look as a client's: no surprise from LTO.
  set_target_properties(${name} PROPERTIES ENABLE_EXPORTS ON)

  jd_gc_discover(${name} "${name}." "" "${arg_LABELS}" ${arg_TIMEOUT} "")
  if(JD_TEST_PEER OR arg_NO_STRESS)
    return()
  endif()
  if(NOT arg_STRESS_FILTER)
    set(arg_STRESS_FILTER "*")
  endif()
  foreach(setting IN LISTS JD_GC_STRESS_SETTINGS)
    jd_gc_stress(${name} "${setting}" "${arg_STRESS_FILTER}" ${arg_TIMEOUT})
  endforeach()
  if(arg_EVERY_FILTER)
    foreach(setting IN LISTS JD_GC_STRESS_EVERY)
      jd_gc_stress(${name} "${setting}" "${arg_EVERY_FILTER}" ${arg_TIMEOUT})
    endforeach()
  endif()
endfunction()

# One setting is name=VAR=value,VAR=value. Sets label to the name and variables to the list of the rest.
function(jd_split_setting setting)
  # Not REGEX REPLACE, whose ^ matches anew after each replacement.
  string(FIND "${setting}" "=" equals)
  string(SUBSTRING "${setting}" 0 ${equals} label)
  math(EXPR equals "${equals} + 1")
  string(SUBSTRING "${setting}" ${equals} -1 variables)
  string(REPLACE "," ";" variables "${variables}")
  set(label "${label}" PARENT_SCOPE)
  set(variables "${variables}" PARENT_SCOPE)
endfunction()

function(jd_gc_stress name setting filter timeout)
  jd_split_setting("${setting}")
  jd_gc_discover(${name} "${name}@${label}." "${filter}" "stress" ${timeout} "${variables}")
endfunction()

function(jd_gc_stress_program name target)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "ONLY")
  foreach(setting IN LISTS JD_GC_STRESS_SETTINGS JD_GC_STRESS_EVERY)
    jd_split_setting("${setting}")
    if(arg_ONLY AND NOT label IN_LIST arg_ONLY)
      continue()
    endif()
    add_test(NAME ${name}@${label} COMMAND ${target} ${arg_UNPARSED_ARGUMENTS})
    # By name alone it would find the system's.
    set_tests_properties(${name}@${label} PROPERTIES LABELS stress TIMEOUT 120
      ENVIRONMENT "LD_LIBRARY_PATH=$<TARGET_FILE_DIR:gc>;${variables}")
    if(variables MATCHES "GC_ENABLE_INCREMENTAL")
      # The library's own word on a system that has none.
      set_tests_properties(${name}@${label} PROPERTIES
        SKIP_REGULAR_EXPRESSION "GC_ENABLE_INCREMENTAL: no partial collections")
    endif()
  endforeach()
endfunction()

function(jd_gc_discover name prefix filter labels timeout variables)
  jackdaw_discover(${name} PREFIX "${prefix}" FILTER "${filter}" TIMEOUT ${timeout}
    LABELS ${labels} ENVIRONMENT ${variables})
endfunction()
