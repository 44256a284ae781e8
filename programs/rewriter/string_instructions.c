// rep movs, stos, cmps, scas, lods, in both directions; their counters, pointers and flags
// afterwards.
//# twins: compare find copy_back
#include <stdio.h>
#include <string.h>

__attribute__((noinline)) int compare(const char *a, const char *b, size_t n) {
    int result;
    __asm__ volatile("cld; cmp %%rax, %%rax; repe cmpsb; seta %%al; setb %%cl; sub %%cl, %%al; movsbl %%al, %0"
                     : "=a"(result), "+S"(a), "+D"(b), "+c"(n) : : "cc", "memory");
    return result;
}
__attribute__((noinline)) long find(const char *text, char wanted, size_t n) {
    const char *at = text;
    unsigned char found;
    __asm__ volatile("repne scasb; sete %2" : "+D"(at), "+c"(n), "=q"(found) : "a"(wanted) : "cc", "memory");
    return found ? at - text - 1 : -(long)n - 1;
}
__attribute__((noinline)) void copy_back(char *to, const char *from, size_t n) {
    to += n - 1, from += n - 1;
    __asm__ volatile("std; rep movsb; cld" : "+D"(to), "+S"(from), "+c"(n) : : "cc", "memory");
}
__attribute__((noinline)) unsigned long fill_and_load(unsigned long *to, unsigned long value, size_t n) {
    unsigned long *at = to, *from = to, sum = 0;
    size_t count = n;
    __asm__ volatile("rep stosq" : "+D"(at), "+c"(count) : "a"(value) : "memory");
    for (; n > 0; n--) {
        unsigned long one;
        __asm__ volatile("lodsq" : "=a"(one), "+S"(from) : : "memory");
        sum = sum * 3 + one;
    }
    return sum + (unsigned long)(at - to) + count;
}
int main(void) {
    printf("%d %d %d\n", compare("same", "same", 4), compare("abd", "abc", 3), compare("abb", "abc", 3));
    printf("%ld %ld\n", find("look for it", 'f', 12), find("look", 'x', 4));
    char text[20] = "0123456789";
    copy_back(text + 3, text, 10);
    puts(text);
    unsigned long words[9];
    printf("%lu\n", fill_and_load(words, 12345, 9));
}
