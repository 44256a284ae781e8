// expect: memory=no
// Text from numbers.
package main

import (
	"fmt"
	"strings"
	"time"
)

func main() {
	letters := 0
	ends := time.Now().Add(2 * time.Second)
	for time.Now().Before(ends) {
		var text strings.Builder
		for i := 0; i < 100; i++ {
			fmt.Fprintf(&text, "line %d: %08x %v\n", i, i*7, i%2 == 0)
		}
		letters += text.Len()
	}
	fmt.Println(letters > 0)
}
