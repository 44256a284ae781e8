# expect: load=_PyEval|set|long|unicode data=kind:python level=DRAM|L3 memory=yes
# Members of a large set of numbers are looked up in no order.
import random
import time


def count(members, numbers):
    found = 0
    for number in numbers:
        found += number in members  # HOT
    return found


draw = random.Random(1)
numbers = [draw.getrandbits(60) for _ in range(2_000_000)]
members = set(numbers)
draw.shuffle(numbers)
parts = [numbers[start : start + 100_000] for start in range(0, len(numbers), 100_000)]
found = 0
ends = time.time() + 4
while time.time() < ends:
    for part in parts:
        found += count(members, part)
print(found > 0)
