#include "os/groups.hpp"

#include <cstdint>
#include <initializer_list>

#include "os/files.hpp"

namespace jd::os {
namespace {

// Does the line have the name next, and nothing else joined to it?
bool has_name(const char* line, const char* name) {
  const char* rest = base::after(line, name);
  return rest != nullptr && (*rest == ',' || *rest == ':');
}

// A line of the list of groups is "number:controllers:path", the controllers with commas between
// them; "0::path" is the group of the unified hierarchy. The path, if the line is about the
// controller; otherwise null.
const char* path_of(const char* line, const char* controller, bool* unified) {
  while (*line != '\0' && *line != ':') ++line;
  if (*line == '\0') return nullptr;
  ++line;
  *unified = *line == ':';
  if (*unified) return line + 1;
  bool listed = false;
  for (bool at_name = true; *line != ':'; ++line) {
    if (*line == '\0') return nullptr;
    listed |= at_name && has_name(line, controller);
    at_name = *line == ',';
  }
  return listed ? line + 1 : nullptr;
}

void set_folder(Group* group, const GroupFiles& files, const char* controller, const char* path,
                std::size_t length) {
  group->folder = {};
  group->folder.add(files.hierarchy);
  // Each controller of the old version has a hierarchy of its own. Where several share one, links
  // lead there by their names.
  if (!group->unified) group->folder.add("/", controller);
  for (std::size_t i = 0; i < length; ++i) group->folder.add(path[i]);
  group->folder.add("/");
}

}  // namespace

unsigned Group::numbers(const char* file, std::size_t* numbers, unsigned most) const {
  base::Text path = folder;
  path.add(file);
  char text[64];
  const std::size_t size = read_file(path.c_str(), text, sizeof text - 1);
  text[size] = '\0';
  const char* c = text;
  unsigned count = 0;
  for (; count < most && *c >= '0' && *c <= '9'; ++count) {
    std::uint64_t value = 0;
    for (; *c >= '0' && *c <= '9'; ++c) {
      if (__builtin_mul_overflow(value, 10, &value) ||
          __builtin_add_overflow(value, static_cast<std::uint64_t>(*c - '0'), &value)) {
        return count;
      }
    }
    // Nothing else may be joined to a number.
    if (*c != '\0' && *c != ' ' && *c != '\n') return count;
    numbers[count] = value;
    if (*c == ' ') ++c;
  }
  return count;
}

std::size_t Group::number(const char* file) const {
  std::size_t value = 0;
  return numbers(file, &value, 1) == 1 ? value : SIZE_MAX;
}

bool Group::has(const char* file) const {
  base::Text path = folder;
  path.add(file);
  char text[1];
  return read_file(path.c_str(), text, sizeof text) != 0;
}

void visit_own_groups(const GroupFiles& files, const char* controller, void* argument,
                      void (*visit)(void* argument, const Group& group)) {
  for_each_line(files.own_groups, [&](const char* line) {
    Group group{};
    const char* path = path_of(line, controller, &group.unified);
    if (path == nullptr) return true;
    std::size_t length = 0;
    while (path[length] != '\0') ++length;
    while (length != 0) {
      set_folder(&group, files, controller, path, length);
      visit(argument, group);
      // The group above, but for the root.
      do {
        --length;
      } while (length != 0 && path[length] != '/');
    }
    return true;
  });
  for (const bool unified : {true, false}) {
    Group root{unified, {}};
    set_folder(&root, files, controller, "", 0);
    visit(argument, root);
  }
}

}  // namespace jd::os
