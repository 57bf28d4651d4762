// The table of links, finalizers and pins, against std::map.
#include "heap/pointer_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <set>

#include "os/memory.hpp"

namespace {

using namespace jd;
using heap::NodeNumber;

struct Node {
  NodeNumber next = 0;
  int value = 0;
  base::Word key = 0;
};
using Table = heap::PointerTable<Node, 3>;
using Contents = std::map<base::Word, int>;

// Each of these tables keeps its memory to the end of the process.
class Tables : public testing::Test {
 protected:
  void add(base::Word key, int value) {
    Node* node = table.add(key);
    ASSERT_NE(node, nullptr);
    node->value = value;
    expected[key] = value;
  }
  // Keys by which some share a bucket, and some lie side by side.
  base::Word some_key() { return (random() % 3000 << 3) + (random() % 4 << 24); }

  void check() {
    Contents found;
    table.for_each([&](const Node* node) {
      EXPECT_TRUE(found.emplace(node->key, node->value).second) << "visited twice: " << node->key;
    });
    EXPECT_EQ(found, expected);
    EXPECT_EQ(table.count(), expected.size());
    for (const auto& [key, value] : expected) {
      const Node* node = table.find(key);
      ASSERT_NE(node, nullptr) << key;
      EXPECT_EQ(node->value, value);
    }
  }

  Table table;
  Contents expected;
  std::mt19937 random{20261124};
};

TEST_F(Tables, FindWhatWasMovedUnderItsNewKeyAlone) {
  EXPECT_EQ(table.move(8, 16), Table::Moved::NoSuchNode);
  for (int round = 0; round < 40000; ++round) {
    const base::Word key = some_key();
    // Now and then to itself, and to a key that shares its bucket.
    const base::Word new_key = round % 16 == 0 ? key : round % 4 == 0 ? key ^ 1 << 24 : some_key();
    if (round % 3 == 0 && expected.count(key) == 0) add(key, round);
    const auto known = expected.find(key);
    if (known == expected.end()) {
      ASSERT_EQ(table.move(key, new_key), Table::Moved::NoSuchNode);
    } else if (key != new_key && expected.count(new_key) != 0) {
      ASSERT_EQ(table.move(key, new_key), Table::Moved::KeyIsTaken);
    } else {
      ASSERT_EQ(table.move(key, new_key), Table::Moved::Yes);
      const int value = known->second;
      expected.erase(known);
      expected[new_key] = value;
    }
    if (round % 5000 == 0) check();
  }
  check();
}

TEST_F(Tables, HoldWhatWasAddedAndNotRemoved) {
  for (int round = 0; round < 40000; ++round) {
    const base::Word key = some_key();
    if (random() % 3 == 0) {
      EXPECT_EQ(table.remove(key), expected.erase(key) == 1);
    } else if (expected.count(key) == 0) {
      ASSERT_EQ(table.find(key), nullptr);
      add(key, round);
    }
    if (round % 5000 == 0) check();
  }
  check();
}

TEST_F(Tables, AreWalkedWholeHoweverFewAreLeft) {
  for (int i = 0; i < 5000; ++i) add(base::Word{8} * static_cast<base::Word>(i), i);
  while (!expected.empty()) {
    check();
    // Every second, so that what is left lies everywhere.
    table.keep_if([](Node* node) { return (node->value & 1) != 0; });
    Contents left;
    for (const auto& [key, value] : expected) {
      if ((value & 1) != 0) left[key] = value >> 1;
    }
    table.for_each([](Node* node) { node->value >>= 1; });
    expected = left;
  }
  check();
  add(64, 7);
  check();
}

TEST_F(Tables, QueuesKeepTheirOrderAndAreNotWalked) {
  std::deque<base::Word> waiting;
  Table::Queue queue;
  for (int round = 0; round < 200; ++round) {
    for (int i = 0; i < 60; ++i) {
      const base::Word key = some_key();
      const bool waits = std::find(waiting.begin(), waiting.end(), key) != waiting.end();
      if (expected.count(key) == 0 && !waits) add(key, static_cast<int>(random() % 4));
    }
    Table::Queue taken;
    std::set<base::Word> gone;
    table.sift(&taken, [&](Node* node) {
      if (node->value == 0) {
        waiting.push_back(node->key);
        gone.insert(node->key);
        return Table::To::Queue;
      }
      if (node->value == 1) gone.insert(node->key);
      return node->value == 1 ? Table::To::Nowhere : Table::To::Table;
    });
    for (const base::Word key : gone) expected.erase(key);
    table.append(&queue, taken);
    check();

    std::deque<base::Word> in_queue;
    table.for_each_in(queue, [&](const Node* node) { in_queue.push_back(node->key); });
    ASSERT_EQ(in_queue, waiting);
    ASSERT_EQ(queue.count, waiting.size());

    for (unsigned n = random() % 12; n != 0; --n) {
      Node first;
      ASSERT_EQ(table.pop(&queue, &first), !waiting.empty());
      if (waiting.empty()) break;
      ASSERT_EQ(first.key, waiting.front());
      waiting.pop_front();
    }
    // Some go back, some are dropped, the rest waits on.
    if (round % 7 != 0) continue;
    std::deque<base::Word> left;
    table.sift_queue(&queue, [&](Node* node) {
      switch (node->key >> 3 & 3) {
        case 0:
          node->value = 2;
          expected[node->key] = 2;
          return Table::To::Table;
        case 1:
          return Table::To::Nowhere;
        default:
          left.push_back(node->key);
          return Table::To::Queue;
      }
    });
    waiting = left;
    check();
  }
}

TEST_F(Tables, NewKeysAreFoundAndOldOnesAreNot) {
  for (int i = 1; i <= 3000; ++i) add(base::Word{16} * static_cast<base::Word>(i), i);
  table.rekey([](base::Word key) { return key + 8; });
  EXPECT_EQ(table.find(16), nullptr);
  Contents moved;
  for (const auto& [key, value] : expected) moved[key + 8] = value;
  expected = moved;
  check();
}

// Regression: each attempt took a chunk of nodes before there was room for the chunk's address.
TEST(TableWithoutMemory, LosesNone) {
  char* const before = static_cast<char*>(heap::arena_take(64));
  static Table table;
  // The buckets are to be had, the list of chunks is not; nodes there are in the arena.
  os::fail_from_call(2);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(table.add(16), nullptr);
  os::fail_from_call(0);
  EXPECT_EQ(heap::arena_take(64), before + 64);
  EXPECT_NE(table.add(16), nullptr);
}

}  // namespace
