// Structures by value: in registers of both kinds, by a hidden pointer, on the stack, and returned.
//# twins: turned grow mixed_pair
#include <stdio.h>

struct small { int a; short b; };
struct mixed { long a; double b; };
struct floats { float a, b, c; };
struct large { long words[7]; };
__attribute__((noinline)) struct small turned(struct small s) { struct small t = {s.b, (short)(s.a + 1)}; return t; }
__attribute__((noinline)) struct mixed mixed_pair(struct mixed m, long n) { m.a += n; m.b *= n; return m; }
__attribute__((noinline)) struct floats three(struct floats f, float by) { f.a += by; f.b -= by; f.c *= by; return f; }
__attribute__((noinline)) struct large grow(struct large l, int a, int b, int c, int d, int e, int f, struct large more, struct mixed m) {
    for (int i = 0; i < 7; i++) l.words[i] = l.words[i] * (a + i) + more.words[6 - i] * b - c + d * e - f + (long)(m.a * m.b);
    return l;
}
int main(void) {
    struct small s = {100, -3};
    struct mixed m = {7, 0.5};
    struct floats f = {1, 2, 3};
    struct large l = {{1, 2, 3, 4, 5, 6, 7}};
    for (int i = 1; i < 5; i++) {
        s = turned(s);
        m = mixed_pair(m, i);
        f = three(f, i * 0.5f);
        l = grow(l, i, 2, 3, 4, 5, 6, l, m);
        printf("%d %d %ld %g %g %g %g %ld %ld\n", s.a, s.b, m.a, m.b, f.a, f.b, f.c, l.words[0], l.words[6]);
    }
}
