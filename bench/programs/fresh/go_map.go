// expect: load=main.score|mapaccess data=kind:go level=DRAM|L3 memory=yes
// Look-ups in a map.
package main

import (
	"fmt"
	"time"
)

//go:noinline
func score(points map[uint64]uint64, draw, players uint64) (uint64, uint64) {
	sum := uint64(0)
	for i := 0; i < 10000; i++ {
		draw = draw*6364136223846793005 + 1442695040888963407
		sum += points[(draw>>32)%players] // HOT
	}
	return draw, sum
}

func main() {
	players := uint64(4000000)
	points := make(map[uint64]uint64, players)
	for i := uint64(0); i < players; i++ {
		points[i] = i
	}
	draw, sum, more := uint64(1), uint64(0), uint64(0)
	ends := time.Now().Add(3 * time.Second)
	for time.Now().Before(ends) {
		draw, more = score(points, draw, players)
		sum += more
	}
	fmt.Println(sum > 0)
}
