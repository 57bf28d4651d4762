// The three files that every process is born with, or is not.
#pragma once

namespace jackdaw {

// To be called before any file is opened. Where one of them is closed, a file of our own would get
// its number, and what is meant for the one would go into the other. So something stands in its
// place, which ends when a program is executed: it reads as empty, and writing fails as before.
void occupy_standard_files();

}  // namespace jackdaw
