# Go's compiler, assembler, linker and command build the same program; and what that does, which is
# about everything that the runtime does with code (runtime.go), it does the same with twins, down
# to what is said of a panic.
#: program $(go tool -n compile)
#: program $(go tool -n link)
#: program $(which go)
#: needs go golang-go
#: needs gcc gcc
export PATH=$PATH:/usr/local/go/bin GOTOOLCHAIN=local GOFLAGS=-trimpath CGO_ENABLED=0
source=$(dirname "$(realpath "$0")")/go/runtime.go
cp "$source" runtime.go
go vet runtime.go && go build -o program runtime.go && echo built
gofmt -l runtime.go
# What goes by: addresses, how far into a function something is, numbers of threads and goroutines.
plain() { sed 's/ +0x[0-9a-f]*//; s/0x[0-9a-f]*/X/g; s/goroutine [0-9]*/goroutine/g; s/in goroutine.*//'; }
run() { # WHAT NAME=VALUE…: its output, and the exit code of a panic that nobody recovers
    local what=$1
    shift
    env "$@" "./$what" panic >"$what.out" 2>"$what.err"
    echo "exit code $?" >>"$what.out"
    plain <"$what.err" >>"$what.out"
}
run program
cat program.out
for mode in identity poison; do
    "$GLEANER" twin --$mode -q -o $mode program 2>&1 >/dev/null
    for how in GOGC=10 GOGC=1 GODEBUG=gccheckmark=1 GODEBUG=gcstoptheworld=1 GODEBUG=asyncpreemptoff=1; do
        run $mode $how
        echo "$mode $how"
        diff program.out $mode.out && echo the same
    done
done
# A program that compares code with a checksum finds it as it was: "verified", where the version can
# do that.
cp "$(dirname "$source")/checked.go" checked.go
go build -o checked checked.go
for how in off on debug; do GODEBUG=fips140=$how ./checked >checked.$how 2>&1; done
cat checked.debug
for mode in identity poison; do
    "$GLEANER" twin --$mode -q -o checked-$mode checked 2>&1 >/dev/null
    for how in off on debug; do
        GODEBUG=fips140=$how ./checked-$mode >checked.out 2>&1
        echo "$mode $how $?"
        diff checked.$how checked.out && echo the same
    done
done
