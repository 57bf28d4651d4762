# How everything in the tree is compiled. What only the collector's own sources need is in
# src/CMakeLists.txt.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS ON)
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(jd_oldest 12)
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  set(jd_oldest 16)
else()
  message(FATAL_ERROR "Jackdaw is built with GCC or clang; this is ${CMAKE_CXX_COMPILER_ID}")
endif()
if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS jd_oldest)
  message(FATAL_ERROR "Jackdaw needs ${CMAKE_CXX_COMPILER_ID} ${jd_oldest} or newer; "
    "${CMAKE_CXX_COMPILER} is ${CMAKE_CXX_COMPILER_VERSION}. Choose another with CC and CXX.")
endif()

# -g1 keeps function names and lines for backtraces and profiles at little cost in size.
# NDEBUG is left alone: our own checks are switched by JD_DEBUG_CHECKS only.
foreach(lang C CXX)
  set(CMAKE_${lang}_FLAGS_RELEASE "-O2 -g1")
  set(CMAKE_${lang}_FLAGS_DEBUG "-Og -g")
endforeach()

if(JD_DEBUG_CHECKS)
  add_compile_definitions(JD_DEBUG_CHECKS=1)
endif()

# Frame pointers make the sanitizers' stack traces quick; -O1 keeps the frames honest.
# Undefined behaviour must end the test, so nothing recovers.
if(JD_SANITIZER)
  add_compile_options(-fsanitize=${JD_SANITIZER} -fno-sanitize-recover=all
    -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${JD_SANITIZER})
  # Sources that have to know under which sanitizer they run (GCC has no __has_feature).
  string(TOUPPER "JD_SANITIZE_${JD_SANITIZER}" jd_sanitizer_macro)
  add_compile_definitions(${jd_sanitizer_macro}=1)
endif()

# What libFuzzer is guided by: which branches an input took.
if(JD_FUZZER)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# The warnings every target of ours links.
add_library(jackdaw_warnings INTERFACE)
target_compile_options(jackdaw_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:C,CXX>:-Wall;-Wextra;-Wimplicit-fallthrough;-Wvla>
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>
  $<$<AND:$<BOOL:${JD_WERROR}>,$<COMPILE_LANGUAGE:C,CXX>>:-Werror>)

# For what waits for others most of the time: a third less to compile.
add_library(jackdaw_compiled_quickly INTERFACE)
target_compile_options(jackdaw_compiled_quickly INTERFACE $<$<CONFIG:Release>:-Og>)
