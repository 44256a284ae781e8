// A hash join: each key of one table is looked up in buckets of 8 slots of the other one.
#define SLOTS 8
#include "hash_join.h"
