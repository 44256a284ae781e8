// Another linker, which folds functions that are the same and lays segments out in its own way.
//# needs-gcc: ld.lld
//# needs-clang: ld.lld
//# flags: -ffunction-sections -fdata-sections -fuse-ld=lld -Wl,--icf=all -Wl,--gc-sections
//# twins: work main
#include <cstdio>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

struct Base { virtual ~Base() {} virtual int twice(int) = 0; };
struct First : virtual Base { int twice(int x) override { if (x % 11 == 0) throw x; return x * 2; } };
struct Second : virtual Base { int more(int x) { return twice(x) + 1; } };
struct Both : First, Second {};

static int ascending(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
static int also_ascending(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
static int (*volatile orders[])(const void *, const void *) = {ascending, also_ascending};

__attribute__((noinline)) int work(Both &both, int n) {
    std::map<int, std::string> words;
    int sum = 0;
    for (int i = 0; i < 5; i++) {
        words[i] = std::to_string(n * i);
        try {
            sum += both.more(n + i);
        } catch (int thrown) {
            sum -= thrown;
            if (thrown % 33 == 0)
                throw;
        }
    }
    switch (sum & 7) {
    case 0: return sum + (int)words.at(4).size();
    case 1: return sum * 3;
    case 2: return sum ^ 0x55;
    case 3: return -sum;
    case 4: return (int)std::vector<int>(3, sum).at(2);
    case 5: return sum >> 1;
    case 6: return sum + 11;
    default: return std::abs(sum - 9);
    }
}
int main() {
    Both both;
    long total = 0;
    for (int n = 0; n < 200; n++) {
        try {
            total += work(both, n);
        } catch (int thrown) {
            total += thrown * 7;
        }
    }
    int numbers[] = {3, 1, 2};
    for (auto order : orders)
        qsort(numbers, 3, sizeof(int), order);
    printf("%ld %d\n", total, numbers[0]);
}
