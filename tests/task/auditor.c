/* An auditor (man 7 rtld-audit) that wants to hear of each function's return: for that the loader
 * copies as much of the caller's stack as pltenter says the arguments may take, from above them. */
#define _GNU_SOURCE
#include <link.h>
#include <stdint.h>

unsigned la_version(unsigned version) {
  (void)version;
  return LAV_CURRENT;
}

unsigned la_objopen(struct link_map* map, Lmid_t space, uintptr_t* cookie) {
  (void)map;
  (void)space;
  (void)cookie;
  return LA_FLG_BINDTO | LA_FLG_BINDFROM;
}

Elf64_Addr la_x86_64_gnu_pltenter(Elf64_Sym* symbol, unsigned index, uintptr_t* from, uintptr_t* to,
                                  La_x86_64_regs* registers, unsigned* flags, const char* name,
                                  long* frame_size) {
  (void)index;
  (void)from;
  (void)to;
  (void)registers;
  (void)flags;
  (void)name;
  *frame_size = 512;
  return symbol->st_value;
}

unsigned la_x86_64_gnu_pltexit(Elf64_Sym* symbol, unsigned index, uintptr_t* from, uintptr_t* to,
                               const La_x86_64_regs* registers, La_x86_64_retval* result,
                               const char* name) {
  (void)symbol;
  (void)index;
  (void)from;
  (void)to;
  (void)registers;
  (void)result;
  (void)name;
  return 0;
}
