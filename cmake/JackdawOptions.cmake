# What a builder may choose. The presets in CMakePresets.json are named settings of these.

option(JD_BUILD_TESTS "Build the tests (needs GoogleTest)" ON)
option(JD_BUILD_TOOLS "Build the jackdaw command and the benchmarks (need CLI11, fmt, nlohmann-json)" ON)
option(JD_WERROR "Treat warnings as errors" ON)
option(JD_DEBUG_CHECKS "Compile the collector's internal checks in (they cost time)" OFF)

set(JD_SANITIZER "" CACHE STRING "Sanitizer to build with: empty, address, undefined or thread")
set_property(CACHE JD_SANITIZER PROPERTY STRINGS "" address undefined thread)
if(NOT JD_SANITIZER MATCHES "^(|address|undefined|thread)$")
  message(FATAL_ERROR
    "JD_SANITIZER is '${JD_SANITIZER}'; it must be empty, address, undefined or thread")
endif()

option(JD_FUZZER "Build tests/fuzz with libFuzzer (needs clang)" OFF)

# Frameworks that only the benchmarks compare with, and that no Debian package has.
set(JD_PEERS_DIR "${PROJECT_SOURCE_DIR}/build/peers" CACHE PATH
  "Where scripts/fetch-peers put Taskflow and libfork")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release or Debug" FORCE)
endif()

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# Where what stands in for bdwgc is installed. By default in folders of its own, so that installing
# Jackdaw changes the collector of no program that was not told so; docs/guide/building.md.
option(JD_INSTALL_AS_LIBGC "Install libgc.so.1, its headers and bdw-gc.pc where programs look first"
  OFF)
if(JD_INSTALL_AS_LIBGC)
  set(JD_INSTALL_GC_LIBDIR "${CMAKE_INSTALL_LIBDIR}")
  set(JD_INSTALL_GC_INCLUDEDIR "${CMAKE_INSTALL_INCLUDEDIR}")
else()
  set(JD_INSTALL_GC_LIBDIR "${CMAKE_INSTALL_LIBDIR}/jackdaw")
  set(JD_INSTALL_GC_INCLUDEDIR "${CMAKE_INSTALL_INCLUDEDIR}/jackdaw-gc")
endif()
