// The control groups that this process is in, as either version of the system's hierarchy has them.
#pragma once

#include <cstddef>

#include "base/text.hpp"

namespace jd::os {

// Where the system tells of control groups; elsewhere in tests.
struct GroupFiles {
  const char* own_groups = "/proc/self/cgroup";
  const char* hierarchy = "/sys/fs/cgroup";
};

struct Group {
  bool unified;       // version 2
  base::Text folder;  // with its files

  // The number with which a file of the group's begins; SIZE_MAX if there is no such file or it
  // begins with something else ("max").
  [[nodiscard]] std::size_t number(const char* file) const;
  // Can it be read?
  [[nodiscard]] bool has(const char* file) const;
  // The numbers of a file, up to `most`; how many there are before anything else comes.
  unsigned numbers(const char* file, std::size_t* numbers, unsigned most) const;
};

// Calls visit(group) for the process's own group for that controller ("memory"), and for each group
// above it, whose limits are shared by all below; the root is the last. Inside of a container, what
// is the root is the container's own group. Groups that are not there are visited, too: they have
// no files.
void visit_own_groups(const GroupFiles& files, const char* controller, void* argument,
                      void (*visit)(void* argument, const Group& group));

template <class Visit>
void for_each_own_group(const GroupFiles& files, const char* controller, Visit visit) {
  visit_own_groups(files, controller, &visit, [](void* argument, const Group& group) {
    (*static_cast<Visit*>(argument))(group);
  });
}

}  // namespace jd::os
