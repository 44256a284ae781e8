// expect: memory=no
// Words are split, counted by their lengths and put together again.
package main

import (
	"fmt"
	"strings"
	"time"
)

func main() {
	text := strings.Repeat("the core that waits on memory does nothing at all ", 20)
	total := 0
	ends := time.Now().Add(2 * time.Second)
	for time.Now().Before(ends) {
		lengths := map[int]int{}
		for _, word := range strings.Fields(text) {
			lengths[len(word)]++
		}
		total += len(fmt.Sprint(lengths, strings.ToUpper(text[:100])))
	}
	fmt.Println(total > 0)
}
