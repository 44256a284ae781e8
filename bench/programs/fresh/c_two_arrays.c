// expect: load=mix data=site level=DRAM memory=yes
// Two arrays that are allocated one line after the other: the small one stays in L1, the large one
// is read all over.
#include "fresh.h"

__attribute__((noinline)) static double mix(const double *small, const double *large, uint64_t mask, long reads) {
    double sum = 0;
    while (reads--) {
        uint64_t r = draw();
        sum += small[r & 255] * large[(r >> 12) & mask]; // HOT
    }
    return sum;
}

int main(int argc, char **argv) {
    sizes(argc, argv);
    uint64_t count = 1;
    while (count * sizeof(double) < dram_bytes())
        count *= 2;
    double *small = calloc(256, sizeof *small);
    double *large = malloc(count * sizeof *large); // DATA
    for (uint64_t i = 0; i < count; i++)
        large[i] = i;
    double sum = 0;
    begin_work(2);
    while (goes_on())
        sum += mix(small, large, count - 1, 100000);
    printf("%d\n", sum == 0);
}
