// Exceptions of all kinds: by value, by base class, of pointers and of types that only move;
// changed on the way, thrown again.
//# twins: thrower catcher
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>

struct Counted {
    const char *name;
    ~Counted() { std::printf("~%s\n", name); }
};
struct Base { virtual ~Base() = default; virtual int code() const { return 1; } };
struct Derived : Base { int code() const override { return 2; } };

__attribute__((noinline)) void thrower(int kind) {
    switch (kind) {
    case 0: throw 42;
    case 1: throw std::string("text");
    case 2: throw Derived();
    case 3: throw std::out_of_range("range");
    case 4: throw std::make_unique<int>(7);
    case 5: throw "literal";
    case 6: throw 2.5;
    default: return;
    }
}
__attribute__((noinline)) std::string catcher(int kind) {
    Counted outer{"outer"};
    try {
        try {
            Counted inner{"inner"};
            thrower(kind);
            return "nothing";
        } catch (const std::logic_error &error) {
            std::printf("logic %s\n", error.what());
            throw;
        } catch (double value) {
            throw static_cast<int>(value * 2);
        }
    } catch (int value) {
        return "int " + std::to_string(value);
    } catch (const std::string &text) {
        return text;
    } catch (const Base &base) {
        return "base " + std::to_string(base.code());
    } catch (const std::exception &error) {
        return error.what();
    } catch (const std::unique_ptr<int> &pointer) {
        return "pointer " + std::to_string(*pointer);
    } catch (...) {
        return "something";
    }
}
int main() {
    for (int kind = 0; kind < 8; kind++) std::printf("%d: %s\n", kind, catcher(kind).c_str());
}
