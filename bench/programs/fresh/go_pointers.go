// expect: load=main.balance data=kind:go level=DRAM memory=yes
// A slice of pointers to structures, in no order.
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

type account struct {
	amount int64
	name   [11]int64
}

//go:noinline
func balance(accounts []*account) int64 {
	sum := int64(0)
	for _, a := range accounts {
		sum += a.amount // HOT
	}
	return sum
}

func main() {
	l3 := int64(32 << 20)
	if len(os.Args) > 3 {
		l3, _ = strconv.ParseInt(os.Args[3], 10, 64)
	}
	count := min(max(2*l3, 256<<20), 1<<30) / 96
	accounts := make([]*account, count)
	for i := range accounts {
		accounts[i] = &account{amount: int64(i)}
	}
	draw := uint64(1)
	for i := count - 1; i > 0; i-- {
		draw = draw*6364136223846793005 + 1442695040888963407
		j := int64(draw>>33) % i
		accounts[i], accounts[j] = accounts[j], accounts[i]
	}
	sum := int64(0)
	ends := time.Now().Add(3 * time.Second)
	for time.Now().Before(ends) {
		sum += balance(accounts)
	}
	fmt.Println(sum > 0)
}
