// The measured statistics as a line of JSON, written when the program exits (JACKDAW_STATISTICS):
// what benchmarks and `jackdaw run` read of programs that they cannot ask.
#pragma once

namespace jd::cycle {

// Notes the time, the process and the file's name, of which a copy is made. At the start. `path`:
// null for none; "%p" in it stands for the process's number.
void prepare_statistics(const char* path);

}  // namespace jd::cycle
