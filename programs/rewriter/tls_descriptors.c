// The same by TLS descriptors, whose functions keep every register: callers rely on that.
//# compilers: gcc
//# library: lib/tls.c
//# flags: -pthread -mtls-dialect=gnu2
//# twins: general_dynamic local_dynamic start
#include "tls_library.c"
