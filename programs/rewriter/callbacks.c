// The C library calls back: sorting, searching, and a comparison that sorts itself.
//# twins: by_text by_length by_sorted_copy
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }
int by_length(const void *a, const void *b) {
    size_t x = strlen(*(char *const *)a), y = strlen(*(char *const *)b);
    return x != y ? (x > y) - (x < y) : by_text(a, b);
}
static int by_letter(const void *a, const void *b) { return *(const char *)a - *(const char *)b; }
int by_sorted_copy(const void *a, const void *b) {
    char x[32] = {0}, y[32] = {0};
    strcpy(x, *(char *const *)a);
    strcpy(y, *(char *const *)b);
    qsort(x, strlen(x), 1, by_letter);
    qsort(y, strlen(y), 1, by_letter);
    int by = strcmp(x, y);
    return by ? by : by_text(a, b);
}
int main(void) {
    char *words[] = {"pear", "apple", "fig", "date", "reap", "gif", "plum", "ape", "pea", "lump", "kiwi", "grape"};
    size_t count = sizeof words / sizeof *words;
    int (*orders[])(const void *, const void *) = {by_text, by_length, by_sorted_copy};
    for (int i = 0; i < 3; i++) {
        qsort(words, count, sizeof *words, orders[i]);
        for (size_t k = 0; k < count; k++) printf("%s ", words[k]);
        puts("");
    }
    qsort(words, count, sizeof *words, by_text);
    char *wanted = "kiwi", *absent = "nut";
    char **found = bsearch(&wanted, words, count, sizeof *words, by_text);
    printf("%s %d\n", found ? *found : "none", bsearch(&absent, words, count, sizeof *words, by_text) == 0);
    return !found;
}
