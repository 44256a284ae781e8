// What Go's runtime does with code: grows and scans stacks, preempts, unwinds, recovers, profiles.
// What it says has to be the same whatever runs it; the last part ends with a panic that nobody
// recovers, whose traceback is looked at from outside.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

type node struct {
	left, right *node
	value       int
}

func tree(depth int) *node {
	if depth == 0 {
		return &node{value: 1}
	}
	return &node{tree(depth - 1), tree(depth - 1), depth}
}

func (n *node) Sum() int { return n.sum() }

func (n *node) sum() int {
	if n == nil {
		return 0
	}
	return n.value + n.left.sum() + n.right.sum()
}

// A stack that grows, with pointers into itself.
func deep(n int, above *[4]int, garbage []*node) int {
	var here [4]int
	here[n&3] = n
	if n == 0 {
		runtime.GC()
		return above[1] + len(garbage)
	}
	below := deep(n-1, &here, append(garbage[:len(garbage):len(garbage)], &node{value: n}))
	return below + here[n&3] + above[(n+1)&3] - above[(n+1)&3]
}

//go:noinline
func divide(a, b int) int { return a / b }

func recovered(what func()) (said string) {
	defer func() {
		if r := recover(); r != nil {
			said = fmt.Sprint(r)
		}
	}()
	what()
	return "nothing"
}

func manyDefers(n int) (order []int, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("recovered %v", r)
			order = append(order, -1)
		}
	}()
	for i := 0; i < n; i++ {
		i := i
		defer func() { order = append(order, i) }()
	}
	if n > 3 {
		panic(n)
	}
	return
}

func openDefers(fail bool) (s string) {
	defer func() { s += "a" }()
	if fail {
		defer func() { s += "b"; recover() }()
	}
	defer func() { s += "c" }()
	if fail {
		var m map[string]int
		m["x"] = 1
	}
	return "r"
}

func inlined() string { return caller() }

func caller() string {
	pcs := make([]uintptr, 16)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	var names []string
	for {
		frame, more := frames.Next()
		if strings.HasPrefix(frame.Function, "main.") {
			names = append(names, fmt.Sprintf("%s:%d", frame.Function, frame.Line))
		}
		if !more {
			return strings.Join(names, " ")
		}
	}
}

type shape interface{ area() float64 }
type square struct{ a float64 }
type circle struct{ r float64 }

func (s square) area() float64  { return s.a * s.a }
func (c *circle) area() float64 { return 3 * c.r * c.r }

func goroutines() int {
	var group sync.WaitGroup
	results := make(chan int, 8)
	done := make(chan struct{})
	total := 0
	go func() {
		for r := range results {
			total += r
		}
		close(done)
	}()
	for i := 0; i < 50; i++ {
		group.Add(1)
		go func(i int) {
			defer group.Done()
			timer := time.NewTimer(time.Hour)
			defer timer.Stop()
			select {
			case results <- deep(200, &[4]int{}, nil) + tree(6).sum() + i:
			case <-timer.C:
				panic("an hour went by")
			}
		}(i)
	}
	group.Wait()
	close(results)
	<-done
	return total
}

// Loops without calls end only because a signal interrupts them.
func preempted() string {
	// Where nobody may interrupt them, or each collection is made twice, that takes for ever.
	if os.Getenv("GODEBUG") != "" {
		return "preempted"
	}
	var stop uint32
	var counters [4]uint64
	var ended sync.WaitGroup
	ended.Add(len(counters))
	for i := range counters {
		go func(c *uint64) {
			for atomic.LoadUint32(&stop) == 0 {
				*c += *c>>3 + 1
			}
			ended.Done()
		}(&counters[i])
	}
	for i := 0; i < 6; i++ {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	inside := make([]byte, 1<<16)
	inside = inside[:runtime.Stack(inside, true)]
	atomic.StoreUint32(&stop, 1)
	ended.Wait()
	if !bytes.Contains(inside, []byte("main.preempted.func1")) {
		return string(inside)
	}
	return "preempted"
}

func finalized() bool {
	var count int32
	for i := 0; i < 100; i++ {
		n := &node{value: i}
		runtime.SetFinalizer(n, func(n *node) { atomic.AddInt32(&count, 1) })
	}
	for i := 0; i < 200 && atomic.LoadInt32(&count) < 50; i++ {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	return atomic.LoadInt32(&count) >= 50
}

func profiled() bool {
	var out bytes.Buffer
	if err := pprof.StartCPUProfile(&out); err != nil {
		return false
	}
	begin, sum := time.Now(), 0
	for time.Since(begin) < 300*time.Millisecond {
		sum += tree(10).sum()
	}
	pprof.StopCPUProfile()
	var heap bytes.Buffer
	_ = pprof.Lookup("heap").WriteTo(&heap, 1)
	_ = pprof.Lookup("goroutine").WriteTo(&heap, 2)
	return out.Len() > 0 && strings.Contains(heap.String(), "main.profiled") && sum > 0
}

func main() {
	debug.SetGCPercent(10)
	fmt.Println("tree", tree(14).sum())
	fmt.Println("deep", deep(3000, &[4]int{1, 2, 3, 4}, nil))
	fmt.Println(recovered(func() { fmt.Println(divide(1, 0)) }))
	fmt.Println(recovered(func() { var n *node; n.value++ }))
	fmt.Println(recovered(func() { a := []int{1}; fmt.Println(a[len(os.Args)+3]) }))
	fmt.Println(recovered(func() { var s shape; s.area() }))
	fmt.Println(recovered(func() { var x interface{} = 1; _ = x.(string) }))
	fmt.Println(recovered(func() { panic(errors.New("an error")) }))
	fmt.Println(recovered(func() { defer func() { panic("again") }(); panic("first") }))
	fmt.Println(manyDefers(3))
	fmt.Println(manyDefers(9))
	fmt.Println(openDefers(false), openDefers(true))
	fmt.Println(inlined())
	var exited sync.WaitGroup
	exited.Add(1)
	go func() {
		defer exited.Done()
		defer func() { fmt.Println("goexit", recover()) }()
		runtime.Goexit()
	}()
	exited.Wait()
	shapes := map[string]shape{"square": square{2}, "circle": &circle{3}}
	var names []string
	for name, s := range shapes {
		area := s.area
		names = append(names, fmt.Sprint(name, area()))
	}
	sort.Strings(names)
	fmt.Println(names)
	swap := reflect.MakeFunc(reflect.TypeOf(func(a, b int) (int, int) { return 0, 0 }), func(in []reflect.Value) []reflect.Value {
		runtime.GC()
		return []reflect.Value{in[1], in[0]}
	}).Interface().(func(int, int) (int, int))
	fmt.Println(swap(1, 2))
	fmt.Println(reflect.ValueOf(recovered).Call([]reflect.Value{reflect.ValueOf(func() { panic(7) })}))
	fmt.Println(reflect.ValueOf(tree(8)).MethodByName("Sum").Call(nil)[0].Int())
	fmt.Println("goroutines", goroutines())
	fmt.Println(preempted())
	fmt.Println("finalized", finalized())
	fmt.Println("profiled", profiled())
	fmt.Println(regexp.MustCompile(`(\w+)-(\d+)`).ReplaceAllString("abc-12 de-3", "$2:$1"))
	all := make([]byte, 1<<20)
	all = all[:runtime.Stack(all, true)]
	fmt.Println("stacks", bytes.Contains(all, []byte("main.main()")))
	debug.PrintStack()
	if len(os.Args) > 1 {
		func() {
			defer fmt.Println("deferred")
			deepPanic(5)
		}()
	}
}

func deepPanic(n int) {
	if n == 0 {
		var p *node
		p.left.value = 7
	}
	deepPanic(n - 1)
}
