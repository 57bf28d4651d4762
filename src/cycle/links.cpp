#include "cycle/links.hpp"

#include "cycle/table_limit.hpp"
#include "heap/pointer_table.hpp"
#include "heap/space.hpp"

namespace jd::cycle {
namespace {

using base::Word;

// 20 bytes: not aligned as words are.
struct [[gnu::packed, gnu::aligned(4)]] Link {
  heap::NodeNumber next = 0;
  Word key = 0;     // the link's own address
  Word object = 0;  // as the program gave it: perhaps tagged, perhaps inside the object
};

// Under the heap's lock.
using Links = heap::PointerTable<Link, 3>;  // words
Links tables[2];
TableLimit limits[2];

// Short links in objects that were not marked when the links were cleared, taken out of their table
// until it is known whether a finalizer keeps them. Used in a stopped world only.
Links::Queue in_unmarked;

Links& table_of(LinkLength length) { return tables[static_cast<int>(length)]; }
TableLimit& limit_of(LinkLength length) { return limits[static_cast<int>(length)]; }

}  // namespace

bool is_reachable(Word object) {
  if (!heap::in_heap(object)) return true;
  // Asked of each link, twice.
  const heap::Block& block = heap::space.blocks[heap::block_number(object)];
  if (__builtin_expect(block.state == heap::BlockState::Small, 1)) {
    const unsigned slot = block.slot_of(object & (heap::kBlockSize - 1));
    return slot < block.slots && block.marked(slot) && block.is_allocated(slot);
  }
  heap::Place place;
  return heap::find_object(object, &place) && place.marked();
}

TableResult add_link(void** link, const void* object, LinkLength length) {
  Links& table = table_of(length);
  const Word key = base::as_word(link);
  if (Link* known = table.find(key)) {
    known->object = base::as_word(object);
    return TableResult::Duplicate;
  }
  limit_of(length).before_adding_to(table);
  Link* added = table.add(key);
  if (added == nullptr) return TableResult::NoMemory;
  added->object = base::as_word(object);
  return TableResult::Ok;
}

bool remove_link(void** link, LinkLength length) {
  return table_of(length).remove(base::as_word(link));
}

TableResult move_link(void** from, void** to, LinkLength length) {
  switch (table_of(length).move(base::as_word(from), base::as_word(to))) {
    case Links::Moved::NoSuchNode:
      return TableResult::NotFound;
    case Links::Moved::KeyIsTaken:
      return TableResult::Duplicate;
    case Links::Moved::Yes:
      break;
  }
  return TableResult::Ok;
}

namespace {

// False, and the link is null, if its object is not marked.
bool keep_link(const Link& link) {
  if (is_reachable(link.object)) return true;
  *reinterpret_cast<Word*>(link.key) = 0;
  return false;
}

}  // namespace

void clear_short_links() {
  table_of(LinkLength::Short).sift(&in_unmarked, [](Link* link) {
    if (!keep_link(*link)) return Links::To::Nowhere;
    return is_reachable(link->key) ? Links::To::Table : Links::To::Queue;
  });
}

void forget_short_links_in_dead_objects() {
  table_of(LinkLength::Short).sift_queue(&in_unmarked, [](Link* link) {
    return is_reachable(link->key) ? Links::To::Table : Links::To::Nowhere;
  });
}

void clear_long_links() {
  table_of(LinkLength::Long).keep_if([](Link* link) {
    return keep_link(*link) && is_reachable(link->key);
  });
}

void forget_links_on(const os::Extent* stacks, std::size_t count) {
  for (Links& table : tables) {
    table.keep_if([stacks, count](Link* link) {
      return !os::one_contains(stacks, count, base::as_pointer(link->key));
    });
  }
}

std::size_t count_links(LinkLength length) { return table_of(length).count(); }

void visit_link_addresses(void (*visit)(Word address)) {
  for (auto& table : tables) {
    table.for_each([visit](Link* link) {
      visit(link->key);
      visit(link->object);
    });
  }
}

void visit_links(LinkLength length, void (*visit)(void* object, void** link)) {
  table_of(length).for_each([visit](Link* link) {
    visit(base::as_pointer(link->object), reinterpret_cast<void**>(link->key));
  });
}

}  // namespace jd::cycle
