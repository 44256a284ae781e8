// expect: memory=no
// Text from numbers, by streams and by snprintf.
#include "fresh.h"
#include <sstream>

int main(int argc, char **argv) {
    sizes(argc, argv);
    size_t letters = 0;
    begin_work(2);
    while (goes_on())
        for (int i = 0; i < 100; i++) {
            std::ostringstream text;
            text << "line " << i << ": " << 1.5 * i << ", " << (i & 1 ? "odd" : "even");
            char line[120];
            letters += snprintf(line, sizeof line, "%d %08x %.3f %s", i, i * 7, i / 3.0, text.str().c_str());
        }
    printf("%d\n", letters > 0);
}
