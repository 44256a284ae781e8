# gcc's compilers, assembler and linker give the same assembly and the same program.
#: program $(gcc -print-prog-name=cc1)
#: program $(g++ -print-prog-name=cc1plus)
#: program $(which as)
#: program $(which ld)
#: needs gcc gcc
#: needs g++ g++
awk 'BEGIN { srand(1); print "#include <stdio.h>\n#include <string.h>\n#include <math.h>\n#include <stdlib.h>\nstruct s { int a; double b; char c[24]; struct s *next; };";
for (i = 0; i < 24; i++) { printf "static int sw%d(int x, struct s *p) { switch (x %% %d) {\n", i, 7 + i % 9; for (j = 0; j < 7 + i % 9; j++) printf "case %d: p->a += x * %d; %s\n", j, int(rand() * 1000), (j % 3) ? "break;" : "p->b = sqrt(p->b + x); /* fall through */"; print "default: return p->a; } return x ^ p->a; }";
printf "static double fl%d(double *restrict a, const double *restrict b, int n) { double t = %f; for (int i = 0; i < n; i++) { a[i] = a[i] * b[i] + %d; t += a[i] > b[i] ? a[i] : -b[i]; } return t; }\n", i, rand(), i;
printf "static unsigned h%d(const char *s) { unsigned h = %du; while (*s) h = (h ^ (unsigned char)*s++) * 16777619u; return h / %d + h %% %d; }\n", i, rand() * 1e9, 3 + i, 11 + i }
print "int main(void) { struct s q = {1, 2.0, \"x\", 0}; double a[64], b[64]; unsigned h = 0; for (int i = 0; i < 64; i++) a[i] = i, b[i] = 64 - i;"; for (i = 0; i < 24; i++) printf "h += sw%d(%d, &q) + (int)fl%d(a, b, 64) %% 1000 + h%d(\"text%d\");\n", i, i * 31, i, i, i; print "printf(\"%u\\n\", h); return 0; }" }' >big.c
cat >big.cpp <<'CPP'
#include <algorithm>
#include <iostream>
#include <map>
#include <regex>
#include <string>
#include <vector>
#include <memory>
#include <functional>
template <int N> struct fib { static constexpr int value = fib<N - 1>::value + fib<N - 2>::value; };
template <> struct fib<1> { static constexpr int value = 1; };
template <> struct fib<0> { static constexpr int value = 0; };
int main() {
    std::map<std::string, std::vector<int>> m;
    std::regex word("([a-z]+)([0-9]*)");
    std::string text = "alpha1 beta22 gamma alpha3";
    for (std::sregex_iterator i(text.begin(), text.end(), word), end; i != end; ++i) m[(*i)[1]].push_back((*i)[2].length());
    for (auto &[k, v] : m) std::cout << k << ' ' << v.size() << '\n';
    try { m.at("none"); } catch (std::out_of_range &) { std::cout << fib<20>::value << '\n'; }
    auto f = std::make_unique<std::function<int(int)>>([&](int x) { return x + (int)m.size(); });
    std::cout << (*f)(3) << '\n';
}
CPP
for options in -O0 '-O2 -g' '-O3 -march=x86-64-v4' '-O2 -flto=1 -ffat-lto-objects -frandom-seed=1' '-O1 -fsanitize=undefined'; do
    gcc $options -S -o big.s big.c && sha256sum big.s && wc -l <big.s
done
gcc -O1 -Wall -Wextra -S -o /dev/null big.c 2>&1 | tail -5; gcc -E -dM - </dev/null | sort | sha256sum
for options in '-O0 -g' '-O2 -std=c++20'; do g++ $options -S -o big2.s big.cpp && sha256sum big2.s; done
gcc -O2 -g -o big big.c -lm && ./big && sha256sum big; g++ -O2 -o big2 big.cpp && ./big2 && sha256sum big2
for error in 'int f( { return 1; }' 'int f(void) { return x + "a" * 2; }' '#include "none.h"' 'struct s { int a; struct s b; };' '#if 1'; do echo "$error" | gcc -xc -c -o /dev/null - 2>&1; done
echo 'template <class T> void f(T t) { t.none(); } int main() { f(1); }' | g++ -xc++ -c -o /dev/null - 2>&1
g++ -O1 -g0 -S -o - big.cpp | cksum
