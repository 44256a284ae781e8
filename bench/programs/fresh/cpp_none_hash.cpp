// expect: memory=no
// Hashes of a short text, over and over, in a map that is small.
#include "fresh.h"
#include <string>
#include <unordered_map>

static uint64_t fnv(const std::string &text) {
    uint64_t hash = 14695981039346656037ull;
    for (unsigned char letter : text)
        hash = (hash ^ letter) * 1099511628211ull;
    return hash;
}

int main(int argc, char **argv) {
    sizes(argc, argv);
    std::unordered_map<uint64_t, int> seen;
    std::string text = "the quick brown fox jumps over the lazy dog";
    begin_work(2);
    while (goes_on())
        for (int i = 0; i < 1000; i++) {
            text[i % text.size()] = 'a' + i % 16;
            seen[fnv(text) & 63]++;
        }
    printf("%d\n", seen.size() > 0);
}
