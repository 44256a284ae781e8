// expect: memory=no
// System calls, one after the other.
#include "fresh.h"
#include <fcntl.h>
#include <unistd.h>

int main(int argc, char **argv) {
    sizes(argc, argv);
    int zeros = open("/dev/zero", O_RDONLY);
    char buffer[64];
    long got = 0;
    begin_work(2);
    while (goes_on())
        for (int i = 0; i < 1000; i++)
            got += read(zeros, buffer, sizeof buffer) + (getppid() > 0);
    printf("%d\n", got > 0);
}
