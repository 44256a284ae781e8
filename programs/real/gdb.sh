# gdb debugs a program: breakpoints, conditions, stepping, watching, unwinding, printing, calling,
# signals, threads, cores.
#: program /usr/bin/gdb
#: needs gdb gdb
#: needs gcc gcc
#: quick
# Libraries with separate debug files: gdb tells of each section that the library has more than its
# debug file. So it does of any rewritten library; it goes on with what it has.
gdb() { command gdb "$@" 2>&1 | grep -v -e "^warning: section .* not found in " -e "^warning: target file /proc" -e '^$'; }
cat >target.c <<'C'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct node { int value; struct node *next; char name[12]; double d[3]; enum { RED, GREEN } colour; union { int i; float f; } u; };
static int depth(int n, struct node *p) { if (n == 0) return p->value; int r = depth(n - 1, p->next ? p->next : p); return r + n; }
static int total;
static void count(int i) { total += i; }
static void *thread(void *arg) { int *p = arg; *p += 1; return p; }
int main(int argc, char **argv) {
    struct node *list = 0;
    for (int i = 0; i < 10; i++) { struct node *n = calloc(1, sizeof *n); n->value = i * i; n->next = list; snprintf(n->name, 12, "node%d", i); n->d[1] = i / 3.0; n->colour = i & 1; n->u.f = 1.5f; list = n; }
    for (int i = 0; i < 20; i++) count(i);
    int answer = depth(7, list);
    pthread_t t; pthread_create(&t, 0, thread, &answer); pthread_join(t, 0);
    printf("%d %d\n", answer, total);
    fflush(stdout);
    if (argc > 1) { volatile int *volatile bad = 0; *bad = 1; }
    return 0;
}
C
gcc -g -O1 -fno-inline -o target target.c -lpthread; gcc -g -O2 -o optimised target.c -lpthread
cat >commands <<'GDB'
set pagination off
set confirm off
set print address off
set width 0
set debuginfod enabled off
set can-use-hw-watchpoints 0
break depth if n == 3
break count if i == 7
tbreak main
info breakpoints
run
next
next
continue
bt
finish
watch total
continue
continue
delete 4
continue
bt
info locals
info args
up
print *p
print p->next->name
print p->d
ptype p
ptype struct node
print $_siginfo.si_signo
print sizeof(struct node) * 3 + total
print count(1000)
print total
x/3i $pc
info frame at
set var p->value = 1000
info line
list
frame function main
info source
python print(gdb.selected_frame().name(), gdb.parse_and_eval('total'))
python [print(f.name()) for f in iter(lambda s=[gdb.newest_frame()]: (s.append(s[-1].older()) or s[-2]) if s[-1] else None, None)]
disassemble /s count
info symbol count
info scope depth
delete
break thread
continue
info threads
bt 1
step
step
finish
info sharedlibrary
GDB
for program in target optimised; do gdb -q -nx -batch -x commands ./$program 2>&1 | grep -v -e 'LWP' -e '^\[' | sed -e "s|$HOME||" -e 's/0x[0-9a-f]\{6,\}/ADDRESS/g' -e 's/at ADDRESS//' -e '/libthread_db/d'; echo "status $?"; done
gdb -q -nx -batch -ex 'set debuginfod enabled off' -ex 'set print address off' -ex 'run x' -ex bt -ex 'print bad' -ex 'info signals SIGSEGV' -ex 'generate-core-file core' ./target 2>&1 | grep -v -e LWP -e libthread_db -e '^\[' | sed -e 's/0x[0-9a-f]\{6,\}/ADDRESS/g'
gdb -q -nx -batch -ex 'set debuginfod enabled off' -ex bt -ex 'print *list' -ex 'info threads' ./target core 2>&1 | grep -v -e LWP -e libthread_db -e '^\[' -e '^  *Id' | sed -e 's/0x[0-9a-f]\{6,\}/ADDRESS/g'
gdb -q -nx -batch -ex 'set debuginfod enabled off' -ex 'info functions ^e' -ex 'info types .' -ex 'disassemble main' -ex 'maint info sections' ./optimised 2>&1 | cksum
gdb -q -nx -batch -ex 'info line main' -ex 'info scope main' -ex 'disassemble /rs main' -ex 'python print(len(list(gdb.lookup_type("struct node").fields())))' ./optimised 2>&1 | sed "s|$HOME||" | cksum
gdb -q -nx -batch -ex 'info functions gdb_main' -ex 'disassemble main' "$(which bash)" 2>&1 | tail -3 | cksum
