// expect: load=main.spin data=kind:go level=L2 memory=yes
// A ring of indices that takes a quarter of L2.
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

//go:noinline
func spin(ring []uint32, at uint32, steps int) uint32 {
	for i := 0; i < steps; i++ {
		at = ring[at] // HOT
	}
	return at
}

func main() {
	l2 := 1 << 20
	if len(os.Args) > 3 {
		l2, _ = strconv.Atoi(os.Args[2])
	}
	count := uint32(1)
	for int(count)*8 <= l2/4 {
		count *= 2
	}
	ring := make([]uint32, count)
	for i := range ring {
		ring[i] = (uint32(i)*1664525 + 1013904223) & (count - 1)
	}
	at := uint32(0)
	ends := time.Now().Add(2500 * time.Millisecond)
	for time.Now().Before(ends) {
		at = spin(ring, at, 10000)
	}
	fmt.Println(at < count)
}
