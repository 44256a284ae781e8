"""For gdb, attached to a primary: stops it where it has read which guest it goes on with and has not said so, waits until that guest is at
home and has done what it is to do there, and lets it go on. Says "met", or what it saw in its place."""

import os
import time

import gdb

# `docs/harvest-abi.md`: `mov gs:[CUR], rax`; places in an area, and in a context.
STORE_CUR = bytes([0x65, 0x48, 0x89, 0x04, 0x25, 8, 0, 0, 0])
CUR, OWN = 0x08, 0x38
# `crates/runtime/src/layout`: an area's inner contexts lie in its slot; the state of a context,
# and which one is at home.
SLOT, STATE, HOME = 0x10000, 0x40, 0
MOST = 5000

for signal in ("SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE"):
    gdb.execute(f"handle {signal} nostop noprint pass", to_string=True)
process = gdb.selected_inferior()


def read(at, size=8):
    return int.from_bytes(bytes(process.read_memory(at, size)), "little")


def register(name):
    return int(gdb.parse_and_eval(f"${name}")) & (1 << 64) - 1


def places():
    program = os.readlink(f"/proc/{process.pid}/exe")
    for line in open(f"/proc/{process.pid}/maps"):
        fields = line.split()
        if "x" in fields[1] and fields[-1] == program:
            first, end = (int(part, 16) for part in fields[0].split("-"))
            code = bytes(process.read_memory(first, end - first))
            at = code.find(STORE_CUR)
            while at >= 0:
                yield first + at
                at = code.find(STORE_CUR, at + 1)


def on_its_way():
    """The guest that the primary is about to go on with, if it is about to."""
    area, guest = register("gs_base"), register("rax")
    inner = area <= guest < area + SLOT
    return guest if not inner and read(area + CUR) == read(area + OWN) != guest else None


def wait(seconds, what):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if what():
            return True
        time.sleep(0.02)
    return False


for place in list(places()):
    gdb.Breakpoint(f"*{place:#x}")
guest = None
for _ in range(MOST):
    gdb.execute("continue", to_string=True)
    guest = on_its_way()
    if guest:
        break
gdb.execute("delete")
if not guest:
    said = "nobody was about to be met"
elif not wait(60, lambda: read(guest + STATE, 4) == HOME):
    said = "the guest did not come home"
else:
    open("busy", "w").close()
    said = "met" if wait(60, lambda: os.path.exists("done")) else "the guest does nothing at home"
gdb.execute("detach")
open("end", "w").close()
print(said)
