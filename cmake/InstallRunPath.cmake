# Run by `cmake --install`: writes the run path into an installed .pc file, in place of the one that
# leads through where the file lies. Before it are set:
#
#   JD_PC_FILE       the .pc file, absolute or relative to the prefix
#   JD_PC_LIBRARIES  the library's folder, likewise
#   JD_PC_SEARCHED   the folders where the loader looks without being told
#
# The variable begins with `-`, since pkgconf puts PKG_CONFIG_SYSROOT_DIR before values that begin
# with `/`, and a program's run path must not name the sysroot.
cmake_policy(VERSION 3.25)
set(prefix "${CMAKE_INSTALL_PREFIX}")
cmake_path(ABSOLUTE_PATH prefix) # of `--prefix` as it was typed
cmake_path(ABSOLUTE_PATH JD_PC_FILE BASE_DIRECTORY "${prefix}" NORMALIZE)
cmake_path(ABSOLUTE_PATH JD_PC_LIBRARIES BASE_DIRECTORY "${prefix}" NORMALIZE)
string(REGEX REPLACE "(.)/$" "\\1" JD_PC_LIBRARIES "${JD_PC_LIBRARIES}")

set(runpath "-Wl,-rpath,${JD_PC_LIBRARIES}")
if(JD_PC_LIBRARIES IN_LIST JD_PC_SEARCHED)
  set(runpath "")
endif()
# pkgconf has no way to write a blank in a variable. There the run path stays as it is.
if(NOT JD_PC_LIBRARIES MATCHES "[ \t]")
  file(READ "$ENV{DESTDIR}${JD_PC_FILE}" text)
  string(REGEX REPLACE "\nrunpath=[^\n]*" "\nrunpath=${runpath}" text "${text}")
  file(WRITE "$ENV{DESTDIR}${JD_PC_FILE}" "${text}")
endif()
