// expect: load=mem(cpy|move) data=site level=DRAM memory=yes
// Copies of large buffers by memcpy.
#include "fresh.h"

int main(int argc, char **argv) {
    sizes(argc, argv);
    size_t bytes = dram_bytes(), part = 4 << 20;
    char *from = malloc(bytes); // DATA
    char *to = malloc(part);
    memset(from, 7, bytes);
    long sum = 0;
    begin_work(2);
    for (size_t at = 0; goes_on(); at = (at + part) % bytes) {
        memcpy(to, from + at, at + part > bytes ? bytes - at : part);
        sum += to[at % part];
    }
    printf("%d\n", sum > 0);
}
