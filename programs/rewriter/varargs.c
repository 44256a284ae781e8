// Variable arguments: general and vector registers saved by the number in al, the rest on the
// stack, lists handed on.
//# twins: mixed handed_on
#include <stdarg.h>
#include <stdio.h>

struct pair { long a; double b; };
__attribute__((noinline)) double mixed(int count, ...) {
    va_list list;
    va_start(list, count);
    double sum = 0;
    for (int i = 0; i < count; i++) {
        switch (i % 4) {
        case 0: sum += va_arg(list, double); break;
        case 1: sum += va_arg(list, int); break;
        case 2: { struct pair p = va_arg(list, struct pair); sum += p.a * p.b; break; }
        default: sum += (double)va_arg(list, long double); break;
        }
    }
    va_end(list);
    return sum;
}
__attribute__((noinline)) static int print(char *to, const char *format, va_list list) {
    va_list copy;
    va_copy(copy, list);
    int first = vsnprintf(to, 100, format, list), second = vsnprintf(0, 0, format, copy);
    va_end(copy);
    return first == second ? first : -1;
}
__attribute__((noinline)) int handed_on(char *to, const char *format, ...) {
    va_list list;
    va_start(list, format);
    int length = print(to, format, list);
    va_end(list);
    return length;
}
int main(void) {
    struct pair p = {3, 0.5}, q = {-7, 2};
    printf("%f\n", mixed(8, 1.5, 2, p, 2.5L, 3.5, 4, q, -4.5L));
    printf("%f\n", mixed(5, 1.25, -1, p, 0.125L, 9.0));
    char text[100];
    printf("%d ", handed_on(text, "%d %s %g %c %ld %g %d %d %d %g", 1, "two", 3.5, '4', 5L, 6.25, 7, 8, 9, 10.0));
    puts(text);
    printf("%d %s\n", handed_on(text, "%g %g %g %g %g %g %g %g %g %g", 1., 2., 3., 4., 5., 6., 7., 8., 9., 10.), text);
}
