// A program whose stalls are known: a chain, a gather, and lookups in a map.
package main

import (
	"fmt"
	"os"
	"runtime/pprof"
)

type node struct {
	next *node
	rest [7]uint64
}

//go:noinline
func chase(p *node, n int) *node {
	for ; n > 0; n-- {
		p = p.next
	}
	return p
}

//go:noinline
func gather(table []uint64, index []uint32) (sum uint64) {
	for _, i := range index {
		sum += table[i]
	}
	return sum
}

//go:noinline
func lookup(m map[uint64]uint64, n uint64) (sum uint64) {
	for i := uint64(0); i < n; i++ {
		sum += m[i*0x9e3779b97f4a7c15%500000]
	}
	return sum
}

func main() {
	const size = 1 << 20
	nodes := make([]node, size)
	for i := range nodes {
		nodes[i].next = &nodes[(uint64(i)*0x5deece66d+11)%size]
	}
	table := make([]uint64, 16<<20)
	index := make([]uint32, 4<<20)
	x := uint64(88172645463325252)
	for i := range index {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		index[i] = uint32(x % uint64(len(table)))
	}
	m := make(map[uint64]uint64)
	for i := uint64(0); i < 500000; i++ {
		m[i] = i
	}
	var profile *os.File
	if len(os.Args) > 1 {
		profile, _ = os.Create(os.Args[1])
		pprof.StartCPUProfile(profile)
	}
	p := chase(&nodes[0], 12000000)
	s := uint64(0)
	for i := 0; i < 12; i++ {
		s += gather(table, index)
	}
	s += lookup(m, 4000000)
	if profile != nil {
		pprof.StopCPUProfile()
		profile.Close()
		heap, _ := os.Create(os.Args[1] + ".heap")
		pprof.WriteHeapProfile(heap)
		heap.Close()
	}
	fmt.Println(p != nil, s)
}
