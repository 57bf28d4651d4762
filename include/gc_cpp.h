/* Programs written before the gc/ directory existed say <gc_cpp.h>. */
#include "gc/gc_cpp.h"
