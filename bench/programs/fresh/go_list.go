// expect: load=main.count data=kind:go level=L3 memory=yes
// A linked list in no order, which L2 does not hold.
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

type node struct {
	next *node
	rest [7]int64
}

//go:noinline
func count(at *node, steps int) *node {
	for i := 0; i < steps; i++ {
		at = at.next // HOT
	}
	return at
}

func main() {
	l2 := 1 << 20
	if len(os.Args) > 3 {
		l2, _ = strconv.Atoi(os.Args[2])
	}
	nodes := make([]node, 3*l2/64)
	order := make([]int, len(nodes))
	for i := range order {
		order[i] = i
	}
	draw := uint64(1)
	for i := len(order) - 1; i > 0; i-- {
		draw = draw*6364136223846793005 + 1442695040888963407
		j := int(draw>>33) % i
		order[i], order[j] = order[j], order[i]
	}
	for i := range order {
		nodes[order[i]].next = &nodes[order[(i+1)%len(order)]]
	}
	at := &nodes[0]
	ends := time.Now().Add(2500 * time.Millisecond)
	for time.Now().Before(ends) {
		at = count(at, 10000)
	}
	fmt.Println(at != nil)
}
