/* What the system refuses: processes that may not read their own page tables, since they have given
   up root, and of whose mappings little was touched (malloc.req.roots). Status 77: not permitted.
 */
#define _GNU_SOURCE 1

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <malloc.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client.h"

enum { LENGTH = 500, GARBAGE = 60, NOBODY = 65534 };

/* From now on the call does nothing, and says so by that error; by 0 it says that all went well. */
static void forbid(unsigned call, unsigned error) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) exit(77);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) exit(77);
}

/* The collector of the program that is executed, which is this one, can't start. */
void test_refused_handler(const char* program) {
  forbid(SYS_rt_sigaction, EPERM);
  execl(program, program, "entries", (char*)NULL);
  exit(77);
}

/* The argument says what else the system does not tell. Where it does not tell that it has no swap,
   it may have some. */
static void give_up_root(const char* argument) {
  if (setgid(NOBODY) != 0 || setuid(NOBODY) != 0) exit(77);
  if (open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC) >= 0) exit(77);
  if (strcmp(argument, "no-sysinfo") == 0) forbid(SYS_sysinfo, EPERM);
  if (strcmp(argument, "no-mincore") == 0) forbid(SYS_mincore, EPERM);
  if (strcmp(argument, "idle-mincore") == 0) forbid(SYS_mincore, 0);
}

/* The only pointer to it is at that place. */
static void keep_there(void* place) { *(struct node**)place = make_list(LENGTH); }

static size_t count_touched(char* pages, size_t bytes) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  const size_t count = bytes / page;
  unsigned char* touched = malloc(count);
  size_t found = 0;
  size_t i;
  REQUIRE(touched != NULL && mincore(pages, bytes, touched) == 0);
  for (i = 0; i < count; ++i) found += touched[i] & 1;
  free(touched);
  return found;
}

void test_untouched(const char* argument) {
  const size_t bytes = (size_t)1 << 30;
  const size_t middle = bytes / 2 + 64;
  char* pages =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) exit(77);
  madvise(pages, bytes, MADV_NOHUGEPAGE);
  far_away(keep_there, pages + middle);
  give_up_root(argument);
  make_garbage(GARBAGE);
  REQUIRE(list_is_whole(*(struct node**)(pages + middle), LENGTH));
  if (strstr(argument, "mincore") == NULL) REQUIRE(count_touched(pages, bytes) == 1);
}

/* The same of the program's own objects: of one large object a page was written, in each way to
   have one. */
void test_sparse(const char* argument) {
  const size_t bytes = (size_t)1 << 29;
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char* objects[3];
  int i;
  (void)argument;
  objects[0] = malloc(bytes);
  objects[1] = calloc(bytes, 1);
  objects[2] = aligned_alloc((size_t)2 << 20, bytes);
  for (i = 0; i < 3; ++i) {
    REQUIRE(objects[i] != NULL);
    /* An object of the collector's begins with a page. */
    REQUIRE((size_t)objects[i] % page == 0);
    madvise(objects[i], bytes, MADV_NOHUGEPAGE);
    far_away(keep_there, objects[i] + bytes / 2 + 64);
  }
  make_garbage(GARBAGE);
  make_garbage(GARBAGE);
  for (i = 0; i < 3; ++i) {
    REQUIRE(list_is_whole(*(struct node**)(objects[i] + bytes / 2 + 64), LENGTH));
    REQUIRE(count_touched(objects[i], bytes) == 1);
    free(objects[i]);
  }
}

/* Memory that was used before costs nothing, either, until it is touched. */
void test_clear(const char* argument) {
  const size_t bytes = (size_t)40 << 20;
  int round;
  (void)argument;
  for (round = 0; round < 3; ++round) {
    char* object = calloc(bytes, 1);
    size_t at;
    REQUIRE(object != NULL);
    /* The tag at its end, and what is small beside it. */
    REQUIRE(count_touched(object, bytes & ~(size_t)0xffff) <= 1);
    for (at = 0; at < bytes; at += 64) REQUIRE(object[at] == 0);
    memset(object, 1, bytes);
    free(object);
  }
}

/* What libc's own functions, which know nothing of this heap, would say wrongly. */
void test_trim(const char* argument) {
  enum { COUNT = 50000, SIZE = 1500 };
  static char* objects[COUNT];
  const size_t all = (size_t)COUNT * SIZE;
  struct mallinfo2 before;
  struct mallinfo2 full;
  int i;
  (void)argument;
  before = mallinfo2();
  for (i = 0; i < COUNT; ++i) {
    objects[i] = malloc(SIZE);
    REQUIRE(objects[i] != NULL);
    memset(objects[i], 1, SIZE);
  }
  full = mallinfo2();
  REQUIRE(full.uordblks - before.uordblks >= all);
  REQUIRE(full.arena >= full.uordblks && full.arena == full.uordblks + full.fordblks);
  for (i = 0; i < COUNT; ++i) free(objects[i]);
  memset(objects, 0, sizeof objects);
  REQUIRE(malloc_trim(0) == 1);
  REQUIRE(mallinfo2().arena < full.arena - all / 2);
  malloc_stats();
}

static int faults_file;
/* Written by the thread that serves, read by the one that has touched pages (by atomic operations).
 */
static int faults;

static void* serve_faults(void* argument) {
  static unsigned char zeros[65536];
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  struct uffd_msg message;
  while (read(faults_file, &message, sizeof message) == (ssize_t)sizeof message) {
    struct uffdio_copy copy;
    memset(&copy, 0, sizeof copy);
    copy.dst = message.arg.pagefault.address & ~(page - 1);
    copy.src = (size_t)zeros;
    copy.len = page;
    __atomic_add_fetch(&faults, 1, __ATOMIC_RELAXED);
    ioctl(faults_file, UFFDIO_COPY, &copy);
  }
  return argument;
}

/* A page that is missing is served by a thread, which can't while it is stopped. */
void test_userfault(const char* argument) {
  const size_t bytes = (size_t)1 << 20;
  const size_t place = 5 * (size_t)sysconf(_SC_PAGESIZE);
  struct uffdio_api api;
  struct uffdio_register registration;
  pthread_t thread;
  char* pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(pages != MAP_FAILED);
  faults_file = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
  if (faults_file < 0) exit(77);
  memset(&api, 0, sizeof api);
  api.api = UFFD_API;
  memset(&registration, 0, sizeof registration);
  registration.range.start = (size_t)pages;
  registration.range.len = bytes;
  registration.mode = UFFDIO_REGISTER_MODE_MISSING;
  if (ioctl(faults_file, UFFDIO_API, &api) != 0) exit(77);
  if (ioctl(faults_file, UFFDIO_REGISTER, &registration) != 0) exit(77);
  REQUIRE(pthread_create(&thread, NULL, serve_faults, NULL) == 0);
  far_away(keep_there, pages + place);
  give_up_root(argument);
  /* Else a failure would last for ever. */
  alarm(200);
  make_garbage(GARBAGE);
  REQUIRE(list_is_whole(*(struct node**)(pages + place), LENGTH));
  REQUIRE(__atomic_load_n(&faults, __ATOMIC_RELAXED) == 1);
  REQUIRE(count_touched(pages, bytes) == 1);
}

struct page {
  struct page* next;
};

/* A list, each of whose pages is written at one place alone, which is another in each list. What
   stands elsewhere is of the pages that were there before. */
static struct page* make_pages(size_t bytes, size_t count, unsigned number) {
  struct page* list = NULL;
  size_t i;
  for (i = 0; i < count; ++i) {
    struct page* const page = malloc(bytes);
    const size_t at = 64 + number * 64 % (bytes - 128);
    REQUIRE(page != NULL);
    page->next = list;
    memcpy((char*)page + at, &list, sizeof list);
    list = page;
  }
  return list;
}

/* The argument is the pages' bytes. Of four megabytes in use, not many more stay. */
void test_old_words(const char* argument) {
  const size_t bytes = strtoul(argument, NULL, 10);
  struct page* volatile list = NULL;
  unsigned number;
  for (number = 0; number < 400; ++number) {
    list = make_pages(bytes, (4u << 20) / bytes, number);
  }
  REQUIRE(list != NULL);
}
