// expect: load=main.area|Area data=kind:go level=DRAM|L3 memory=yes
// Calls of interfaces on values that lie in no order.
package main

import (
	"fmt"
	"time"
)

type shape interface{ Area() float64 }
type square struct {
	side float64
	rest [9]float64
}
type disk struct {
	radius float64
	rest   [9]float64
}

//go:noinline
func (s *square) Area() float64 {
	return s.side * s.side // HOT
}

//go:noinline
func (d *disk) Area() float64 {
	return 3.14 * d.radius * d.radius // HOT
}

//go:noinline
func area(shapes []shape) float64 {
	sum := 0.0
	for _, s := range shapes {
		sum += s.Area() // HOT
	}
	return sum
}

func main() {
	const count = 3000000
	shapes := make([]shape, count)
	for i := range shapes {
		if i%2 == 0 {
			shapes[i] = &square{side: float64(i)}
		} else {
			shapes[i] = &disk{radius: float64(i)}
		}
	}
	draw := uint64(1)
	for i := count - 1; i > 0; i-- {
		draw = draw*6364136223846793005 + 1442695040888963407
		j := int(draw>>33) % i
		shapes[i], shapes[j] = shapes[j], shapes[i]
	}
	sum := 0.0
	ends := time.Now().Add(3 * time.Second)
	for time.Now().Before(ends) {
		sum += area(shapes)
	}
	fmt.Println(sum > 0)
}
