// A personality that knows exception tables only as compilers write most of them: landing pads by
// their distance from where the function begins. Crystal's ends the program where a table says
// anything else.
//# flags-gcc: -fno-reorder-blocks-and-partition
//# libs: -ldl
//# skip: static: there is one personality, and nobody to hand on to
//# twins: deep catches
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <stdexcept>
#include <string>
#include <unwind.h>

typedef _Unwind_Reason_Code personality(int, _Unwind_Action, _Unwind_Exception_Class, _Unwind_Exception *, _Unwind_Context *);

static int asked;

extern "C" _Unwind_Reason_Code __gxx_personality_v0(int version, _Unwind_Action actions, _Unwind_Exception_Class kind,
                                                    _Unwind_Exception *exception, _Unwind_Context *context) {
    const unsigned char OMITTED = 0xff;
    static personality *real = (personality *)dlsym(RTLD_NEXT, "__gxx_personality_v0");
    auto table = (const unsigned char *)(uintptr_t)_Unwind_GetLanguageSpecificData(context);
    asked++;
    if (table && *table != OMITTED) {
        printf("a base for landing pads: %d\n", *table);
        fflush(stdout);
        _Exit(1);
    }
    return real(version, actions, kind, exception, context);
}

struct Counts {
    int &left;
    ~Counts() { left++; }
};

static int left;

extern "C" __attribute__((noinline)) int deep(int n) {
    Counts counts{left};
    if (n == 0)
        throw std::runtime_error("bottom");
    return deep(n - 1) + 1;
}

extern "C" __attribute__((noinline)) int catches(int n) {
    try {
        return deep(n);
    } catch (const std::logic_error &) {
        return -1;
    } catch (const std::runtime_error &error) {
        return error.what()[0];
    }
}

int main() {
    int sum = 0;
    for (int i = 0; i < 5; i++)
        sum += catches(i);
    printf("%d %d %s\n", sum, left, asked > 0 ? "asked" : "never asked");
    return 0;
}
