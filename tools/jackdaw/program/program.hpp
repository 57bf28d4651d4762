// From what the user typed to what the kernel will execute, and whether another libgc can be put
// under it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace jackdaw {

struct Program {
  std::filesystem::path file;    // what is executed
  std::filesystem::path binary;  // the ELF file behind it: itself, or the interpreter
};

// Finds `name` (through PATH if it has no slash) and checks it. Throws Failure: not there, not
// executable, setuid, static, another machine's. Throws NoLibgc if nothing it is linked with needs
// libgc.so.1, unless `force`: a program may load libgc later with dlopen, or start another.
Program examine_program(const std::string& name, bool force);
// The same for a program whose malloc is to be served. Throws Failure, too, if it uses libgc: then
// that is what Jackdaw stands in for.
Program examine_malloc_program(const std::string& name);

}  // namespace jackdaw
