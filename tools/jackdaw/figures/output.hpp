// Files that the commands write their results to.
#pragma once

#include <string>

namespace jackdaw {

// Replaces what the file holds, at once: whoever reads it finds the old text or the new. Links are
// followed, and the file's permissions and owner stay. What is no regular file (a device, a pipe)
// is written to; one that this process has open (/dev/stdout), behind what it has. Throws Failure.
void write_file(const std::string& path, const std::string& text);

// The same of a part of what will stand there at the end: what is no regular file, or is one that
// this process has open, gets only the whole. Does not throw: the disk may be full, or the folder
// gone, and at the end write_file() says so, if it still is.
void write_so_far(const std::string& path, const std::string& text);

// Throws Failure with that status now if write_file() would fail later, so that nobody works for
// hours in vain. An empty path is none.
void require_writable(const std::string& path, int exit_status);

}  // namespace jackdaw
