// expect: memory=no
// Words of a short text, counted in a map; strings are copied and thrown away.
#include "fresh.h"
#include <map>
#include <string>

int main(int argc, char **argv) {
    sizes(argc, argv);
    const std::string text = "one fish two fish red fish blue fish black fish blue fish old fish new fish";
    size_t most = 0;
    begin_work(2);
    while (goes_on())
        for (int i = 0; i < 100; i++) {
            std::map<std::string, int> counts;
            size_t from = 0;
            while (from < text.size()) {
                size_t to = text.find(' ', from);
                if (to == std::string::npos)
                    to = text.size();
                counts[text.substr(from, to - from)]++;
                from = to + 1;
            }
            if (counts["fish"] > (int)most)
                most = counts["fish"];
        }
    printf("%d\n", most > 0);
}
