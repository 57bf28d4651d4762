# What `cmake --install` puts where:
#
#   LIBDIR                 libjackdaw.so, libjackdaw.a, libjackdaw-malloc.so, pkgconfig/jackdaw.pc
#   INCLUDEDIR             jackdaw/
#   JD_INSTALL_GC_LIBDIR   libgc.so.1, libgc.so, libgc.a (libjackdaw.a), pkgconfig/bdw-gc.pc
#   JD_INSTALL_GC_INCLUDEDIR  gc.h, gc_cpp.h, gc/
#   MANDIR                 the pages in docs/man
#
# tools/jackdaw installs the command itself.

if(NOT TARGET gc)
  return()
endif()

install(TARGETS jackdaw jackdaw_static
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
if(TARGET jackdaw_malloc)
  install(TARGETS jackdaw_malloc LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
endif()
install(TARGETS gc LIBRARY DESTINATION "${JD_INSTALL_GC_LIBDIR}")
# Without it `-static` would find another collector's, if the system has one.
install(FILES "$<TARGET_FILE:jackdaw_static>" DESTINATION "${JD_INSTALL_GC_LIBDIR}"
  RENAME libgc.a)

if(IS_DIRECTORY "${PROJECT_SOURCE_DIR}/include/jackdaw")
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/jackdaw"
    DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
endif()
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/"
  DESTINATION "${JD_INSTALL_GC_INCLUDEDIR}"
  FILES_MATCHING PATTERN "*.h" PATTERN "jackdaw" EXCLUDE)

# jackdaw.1 is the command's, which installs it.
file(GLOB jd_man_pages CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/docs/man/*.[1-8]")
list(REMOVE_ITEM jd_man_pages "${PROJECT_SOURCE_DIR}/docs/man/jackdaw.1")
foreach(page IN LISTS jd_man_pages)
  string(REGEX MATCH "[1-8]$" section "${page}")
  install(FILES "${page}" DESTINATION "${CMAKE_INSTALL_MANDIR}/man${section}")
endforeach()

# What a .pc file says of a folder that was given absolutely, or relative to the prefix.
function(jackdaw_pkgconfig_folder variable folder)
  cmake_path(IS_ABSOLUTE folder absolute)
  if(absolute)
    set(${variable} "${folder}" PARENT_SCOPE)
  else()
    set(${variable} "\${prefix}/${folder}" PARENT_SCOPE)
  endif()
endfunction()

# jackdaw_pkgconfig(<file.pc> <libdir>): the file finds its prefix from where it lies, so that what
# compiles and links works in a moved tree, too. The run path is the folder's own name, written when
# it is installed: what a program has recorded must not lead through pkgconfig/, which comes with
# the headers and may be missing where the program runs.
function(jackdaw_pkgconfig name libdir)
  set(pkgconfig_dir "${libdir}/pkgconfig")
  cmake_path(ABSOLUTE_PATH pkgconfig_dir BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}"
    OUTPUT_VARIABLE full)
  file(RELATIVE_PATH up "${full}" "${CMAKE_INSTALL_PREFIX}")
  string(REGEX REPLACE "/$" "" up "${up}")
  set(JD_PC_PREFIX "\${pcfiledir}/${up}")
  jackdaw_pkgconfig_folder(JD_PC_LIBDIR "${CMAKE_INSTALL_LIBDIR}")
  jackdaw_pkgconfig_folder(JD_PC_INCLUDEDIR "${CMAKE_INSTALL_INCLUDEDIR}")
  jackdaw_pkgconfig_folder(JD_PC_GC_LIBDIR "${JD_INSTALL_GC_LIBDIR}")
  jackdaw_pkgconfig_folder(JD_PC_GC_INCLUDEDIR "${JD_INSTALL_GC_INCLUDEDIR}")
  configure_file("${PROJECT_SOURCE_DIR}/cmake/${name}.in" "${PROJECT_BINARY_DIR}/${name}" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/${name}" DESTINATION "${pkgconfig_dir}")
  if(NOT JD_INSTALL_AS_LIBGC)
    install(CODE "set(JD_PC_FILE [==[${pkgconfig_dir}/${name}]==])
      set(JD_PC_LIBRARIES [==[${libdir}]==])
      set(JD_PC_SEARCHED [==[${jd_searched}]==])")
    install(SCRIPT "${PROJECT_SOURCE_DIR}/cmake/InstallRunPath.cmake")
  endif()
endfunction()

# A program built against a library in a folder of its own has to find it there when it runs.
set(JD_PC_RUNPATH "")
if(NOT JD_INSTALL_AS_LIBGC)
  set(JD_PC_RUNPATH "-Wl,-rpath,\${libdir}")
endif()
# Where the loader looks without being told, with or without ldconfig.
set(jd_searched /lib /usr/lib /lib64 /usr/lib64)
if(CMAKE_LIBRARY_ARCHITECTURE)
  list(APPEND jd_searched "/lib/${CMAKE_LIBRARY_ARCHITECTURE}" "/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}")
endif()
# The version of bdwgc whose interface libgc.so.1 has: what configure scripts ask for.
set(JD_BDWGC_VERSION 8.2.2)
jackdaw_pkgconfig(bdw-gc.pc "${JD_INSTALL_GC_LIBDIR}")
jackdaw_pkgconfig(jackdaw.pc "${CMAKE_INSTALL_LIBDIR}")
