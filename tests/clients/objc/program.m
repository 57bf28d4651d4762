// Objective-C on GCC's collecting run-time (libobjc_gc): each class has a descriptor of where its
// instances hold pointers, made by the run-time from their types, and instances are allocated by it.
// Argument: the size.
#include <objc/runtime.h>
#import <objc/Object.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

@interface Thing : Object
+ (id)make;
@end
@implementation Thing
+ (id)make {
  return class_createInstance(self, 0);
}
@end

// Words that look like addresses, beside pointers: what the descriptor says counts.
@interface Node : Thing {
 @public
  unsigned long number;
  Node *left;
  double weight;
  Node *right;
}
+ (Node *)treeOf:(int)depth from:(unsigned long)number;
- (unsigned long)sum;
@end
@implementation Node
+ (Node *)treeOf:(int)depth from:(unsigned long)number {
  Node *node = [Node make];
  node->number = number;
  node->weight = 0.5 * (double)number;
  if (depth > 0) {
    node->left = [Node treeOf:depth - 1 from:2 * number];
    node->right = [Node treeOf:depth - 1 from:2 * number + 1];
  }
  return node;
}
- (unsigned long)sum {
  return number + (unsigned long)(2 * weight) + (left ? [left sum] : 0) + (right ? [right sum] : 0);
}
@end

// A table of C strings, in memory that the run-time's allocator gives.
@interface Entry : Thing {
 @public
  char *key;
  long count;
  Entry *next;
}
@end
@implementation Entry
@end

@interface Table : Thing {
  Entry **buckets;
  unsigned capacity;
  long entries;
}
- (Entry *)at:(const char *)key;
- (long)entries;
- (long)total;
@end
@implementation Table
static unsigned hash_of(const char *key) {
  unsigned hash = 5381;
  for (; *key != 0; ++key) hash = hash * 33 + (unsigned char)*key;
  return hash;
}
- (void)grow {
  unsigned old = capacity;
  Entry **from = buckets;
  capacity = old == 0 ? 64 : 2 * old;
  buckets = objc_calloc(capacity, sizeof(Entry *));
  for (unsigned i = 0; i < old; ++i) {
    for (Entry *entry = from[i], *next; entry != nil; entry = next) {
      next = entry->next;
      unsigned at = hash_of(entry->key) % capacity;
      entry->next = buckets[at];
      buckets[at] = entry;
    }
  }
}
- (Entry *)at:(const char *)key {
  if (entries >= (long)capacity) [self grow];
  Entry **bucket = &buckets[hash_of(key) % capacity];
  for (Entry *entry = *bucket; entry != nil; entry = entry->next) {
    if (strcmp(entry->key, key) == 0) return entry;
  }
  Entry *entry = [Entry make];
  entry->key = objc_atomic_malloc(strlen(key) + 1);
  strcpy(entry->key, key);
  entry->next = *bucket;
  *bucket = entry;
  ++entries;
  return entry;
}
- (long)entries {
  return entries;
}
- (long)total {
  long total = 0;
  for (unsigned i = 0; i < capacity; ++i) {
    for (Entry *entry = buckets[i]; entry != nil; entry = entry->next) total += entry->count;
  }
  return total;
}
@end

static unsigned long build_and_drop(int times, int depth) {
  unsigned long sum = 0;
  for (int i = 0; i < times; ++i) sum += [[Node treeOf:depth from:(unsigned long)i] sum];
  return sum;
}

int main(int argc, char **argv) {
  int size = argc > 1 ? atoi(argv[1]) : 1;
  Node *kept = [Node treeOf:15 from:1];

  printf("trees: %lu\n", build_and_drop(15 * size, 12));

  Table *table = [Table make];
  for (int i = 0; i < 20000 * size; ++i) {
    char key[32];
    snprintf(key, sizeof key, "key %d", (int)((unsigned)i * 2654435761u % (unsigned)(5000 * size)));
    ++[table at:key]->count;
  }
  printf("table: %ld entries, %ld in all\n", [table entries], [table total]);

  printf("kept: %lu\n", [kept sum]);
  return 0;
}
