// expect: memory=no
// JSON of a small structure, written and read.
package main

import (
	"encoding/json"
	"fmt"
	"time"
)

type item struct {
	Name  string
	Count int
	Tags  []string
}

func main() {
	sum := 0
	ends := time.Now().Add(2 * time.Second)
	for time.Now().Before(ends) {
		for i := 0; i < 100; i++ {
			text, _ := json.Marshal(item{"a thing", i, []string{"red", "blue"}})
			var back item
			_ = json.Unmarshal(text, &back)
			sum += back.Count
		}
	}
	fmt.Println(sum > 0)
}
