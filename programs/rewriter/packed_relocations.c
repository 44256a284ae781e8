// Relocations packed as bits (RELR): what they point to stands only in the data that they change.
//# shapes: pie stripped
//# flags: -Wl,-z,pack-relative-relocs
//# twins: first second last main
#include <stdio.h>

__attribute__((noinline)) static int first(int x) { return x * 3 + 1; }
__attribute__((noinline)) static int second(int x) { return x ^ (x >> 2); }
__attribute__((noinline)) static int last(int x) { return x % 7 - x; }
struct entry {
    const char *name;
    int (*run)(int);
    const struct entry *next;
};
static const struct entry entries[] = {
    {"first", first, entries + 2}, {"second", second, entries + 3}, {"last", last, entries + 1}, {"end", 0, 0}};
static int (*volatile own[])(int) = {last, first, second, first, last, second};

int main(void) {
    int x = 1000;
    for (const struct entry *entry = entries; entry->run; entry = entry->next)
        printf("%s %d\n", entry->name, x = entry->run(x) + 40);
    for (int i = 0; i < 6; i++)
        x = own[i](x) + 9;
    printf("%d\n", x);
}
