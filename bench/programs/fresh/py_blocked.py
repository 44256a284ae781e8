# expect: load=set|PyEval line=count_blocked data=script:table.of.a.set level=DRAM|L3 memory=yes
# Whether numbers are in a set of two million.
import time


def count_blocked(blocked, callers):
    refused = 0
    for caller in callers:
        if caller in blocked:  # HOT
            refused += 1
    return refused


count = 2_000_000
blocked = {number * 11 for number in range(count)}
callers = [at * 2654435761 % count * 5 for at in range(400_000)]
refused = 0
ends = time.time() + 6
while time.time() < ends:
    refused += count_blocked(blocked, callers)
print(refused > 0)
