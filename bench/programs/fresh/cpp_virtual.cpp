// expect: load=total_area data=site level=DRAM memory=yes
// Virtual calls on objects that lie in no order.
#include "fresh.h"
#include <vector>

struct Shape {
    virtual ~Shape() = default;
    virtual double area() const = 0;
};
struct Square : Shape {
    double side, rest[8];
    explicit Square(double side) : side(side) {}
    double area() const override { return side * side; }
};
struct Disk : Shape {
    double radius, rest[8];
    explicit Disk(double radius) : radius(radius) {}
    double area() const override { return 3.14 * radius * radius; }
};

__attribute__((noinline)) static double total_area(const std::vector<Shape *> &shapes) {
    double sum = 0;
    for (const Shape *shape : shapes)
        sum += shape->area(); // HOT
    return sum;
}

int main(int argc, char **argv) {
    sizes(argc, argv);
    std::vector<Shape *> shapes;
    for (uint64_t bytes = 0; bytes < dram_bytes(); bytes += 160) {
        shapes.push_back(new Square(bytes & 3)); // DATA
        shapes.push_back(new Disk(bytes & 3));   // DATA
    }
    for (size_t i = shapes.size() - 1; i > 0; i--)
        std::swap(shapes[i], shapes[draw() % i]);
    double sum = 0;
    begin_work(3);
    while (goes_on())
        sum += total_area(shapes);
    printf("%d\n", sum > 0);
}
