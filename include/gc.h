/* Programs written before the gc/ directory existed say <gc.h>. */
#include "gc/gc.h"
