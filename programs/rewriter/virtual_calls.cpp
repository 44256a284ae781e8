// Virtual functions: single, multiple and virtual inheritance with their thunks, pointers to
// members, dynamic_cast.
//# twins: visit by_member
#include <cstdio>
#include <memory>
#include <typeinfo>
#include <vector>

struct Shape { virtual ~Shape() = default; virtual int area() const = 0; int id = 1; };
struct Named { virtual ~Named() = default; virtual const char *name() const { return "named"; } int tag = 2; };
struct Square : Shape, Named {
    int side;
    explicit Square(int s) : side(s) {}
    int area() const override { return side * side + tag; }
    const char *name() const override { return side > 2 ? "large square" : "square"; }
};
struct Top { int top = 5; virtual int value() { return top; } virtual ~Top() = default; };
struct Left : virtual Top { int value() override { return top + 10; } };
struct Right : virtual Top { int right = 7; };
struct Bottom : Left, Right { int value() override { return top * right; } Bottom *self() { return this; } };

__attribute__((noinline)) int visit(const std::vector<std::unique_ptr<Shape>> &shapes) {
    int sum = 0;
    for (auto &shape : shapes) {
        sum = sum * 3 + shape->area();
        if (auto *named = dynamic_cast<const Named *>(shape.get())) std::printf("%s %d\n", named->name(), named->tag);
    }
    return sum;
}
__attribute__((noinline)) int by_member(Shape &shape, int (Shape::*f)() const, int Shape::*field) { return (shape.*f)() + shape.*field; }
__attribute__((noinline)) int by_top(Top &top) { return top.value(); }
int main() {
    std::vector<std::unique_ptr<Shape>> shapes;
    for (int i = 1; i < 5; i++) shapes.push_back(std::make_unique<Square>(i));
    std::printf("%d\n", visit(shapes));
    std::printf("%d\n", by_member(*shapes[2], &Shape::area, &Shape::id));
    Bottom bottom;
    Left left;
    std::printf("%d %d %d\n", by_top(bottom), by_top(left), typeid(static_cast<Top &>(bottom)) == typeid(Bottom));
    Right &right = bottom;
    std::printf("%d\n", dynamic_cast<Left *>(&right) == static_cast<Left *>(&bottom));
}
