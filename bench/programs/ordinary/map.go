package main

import "fmt"

func main() {
	table := map[int]int{}
	for i := 0; i < 3000000; i++ {
		table[i*7919%15000017] = i
	}
	sum := 0
	for i := 0; i < 6000000; i++ {
		sum += table[i*104729%15000017]
	}
	fmt.Println(sum)
}
