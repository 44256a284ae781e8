// The control register of vector arithmetic: rounding mode, sticky exceptions, and values that
// depend on both.
//# flags: -frounding-math -ffp-contract=off
//# libs: -lm
//# twins: third sticky
#include <fenv.h>
#include <stdio.h>

static const int modes[] = {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO};
__attribute__((noinline)) double third(double x) { volatile double y = x; return y / 3 + 0.1; }
__attribute__((noinline)) int sticky(double a, double b) {
    volatile double x = a, y = b, z;
    feclearexcept(FE_ALL_EXCEPT);
    z = x / y;
    z = z * 2;
    int raised = fetestexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW | FE_INEXACT);
    return !!(raised & FE_DIVBYZERO) | !!(raised & FE_INVALID) << 1 | !!(raised & FE_OVERFLOW) << 2 | !!(raised & FE_INEXACT) << 3;
}
int main(void) {
    for (int i = 0; i < 4; i++) {
        fesetround(modes[i]);
        double a = third(1), b = third(-1);
        int same = fegetround() == modes[i];
        fesetround(FE_TONEAREST);
        printf("%a %a %d\n", a, b, same);
    }
    printf("%d %d %d %d\n", sticky(1, 0), sticky(0, 0), sticky(1e308, 0.1), sticky(1, 3));
    printf("%d\n", sticky(4, 2));
}
