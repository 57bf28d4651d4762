// Address space and pages. Sizes and addresses are in bytes; every range is whole pages unless it
// says otherwise. No function here aborts: a refusal is returned and the caller decides
// (os.req.refusal).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bits.hpp"

namespace jd::os {

// The system's page size (4 KiB on x86-64).
std::size_t page_size();
// And a huge page's, where the others have 4 KiB.
inline constexpr std::size_t kHugePage = 2 * base::kMiB;

// Reserves address space that can't be touched yet, aligned to `alignment` (a power of two).
// Returns null when the system refuses. Post: not one page is committed.
void* reserve(std::size_t size, std::size_t alignment);
// Gives reserved address space back: the whole of it.
void unreserve(void* p, std::size_t size);

// Makes a reserved range readable and writable. Post: fresh pages read as zero. False when the
// system refuses; then nothing has changed.
[[nodiscard]] bool commit(void* p, std::size_t size);
// Maps zeroed, readable and writable memory of its own; null when the system refuses.
void* map(std::size_t size);
// Gives mapped memory back.
void release(void* p, std::size_t size);
// Such memory that reads as zero in every child of a fork, however the program makes it; one that
// shares its parent's memory (vfork) sees what is there. Null, too, where the system has none.
void* map_zero_in_children(std::size_t size);

// Returns the pages to the system; the range stays committed. Post on true: it reads as zero.
bool discard(void* p, std::size_t size);

// Asks for huge pages in the range. A hint.
void advise_huge_pages(void* p, std::size_t size);

// Writes a zero to the fresh page there, and says how long that took, in ns.
std::uint64_t ns_of_first_touch(void* p);

// Stress (JACKDAW_FAIL_OS): from the n-th call on, commit, map and reserve fail. 0: never.
void fail_from_call(std::size_t n);

}  // namespace jd::os
