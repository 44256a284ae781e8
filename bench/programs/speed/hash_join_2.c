// A hash join: each key of one table is looked up in buckets of 2 slots of the other one.
#define SLOTS 2
#include "hash_join.h"
