# cmake -D filter=TEXT -P scripts/check-filter.cmake: does CMake, and so ctest, read TEXT as a
# regular expression? If not, it ends with an error.
string(REGEX MATCH "${filter}" match "")
