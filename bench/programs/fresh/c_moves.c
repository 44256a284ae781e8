// expect: load=mem(cpy|move) data=site level=DRAM memory=yes
// A ring of frames that is moved down by one frame each time: block copies within one buffer.
#include "fresh.h"

enum { FRAME = 1 << 20 };

int main(int argc, char **argv) {
    sizes(argc, argv);
    size_t bytes = dram_bytes() / FRAME * FRAME;
    char *frames = malloc(bytes); // DATA
    memset(frames, 3, bytes);
    begin_work(2);
    for (int i = 0; goes_on(); i++) {
        memmove(frames, frames + FRAME, bytes - FRAME);
        memset(frames + bytes - FRAME, i, FRAME);
    }
    printf("%d\n", frames[FRAME + 1] >= 0);
}
