// expect: load=count_words data=site level=DRAM|L3 memory=yes
// A trie of random words, its nodes made by `new`.
#include "fresh.h"

struct Node {
    Node *children[16] = {};
    int words = 0;
};

static Node *insert(Node *at, uint64_t word, int letters) {
    for (int i = 0; i < letters; i++) {
        Node *&child = at->children[word >> 4 * i & 15];
        if (!child)
            child = new Node; // DATA
        at = child;
    }
    at->words++;
    return at;
}

__attribute__((noinline)) static int count_words(const Node *at, uint64_t word, int letters) {
    for (int i = 0; i < letters && at; i++)
        at = at->children[word >> 4 * i & 15]; // HOT
    return at ? at->words : 0; // HOT
}

int main(int argc, char **argv) {
    sizes(argc, argv);
    Node *root = new Node;
    const int count = 400000;
    uint64_t *words = new uint64_t[count];
    for (int i = 0; i < count; i++)
        insert(root, words[i] = draw(), 8);
    long sum = 0;
    begin_work(3);
    while (goes_on())
        for (int i = 0; i < 1000; i++)
            sum += count_words(root, words[draw() % count], 8);
    printf("%d\n", sum > 0);
}
