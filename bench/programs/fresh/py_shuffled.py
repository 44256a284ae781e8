# expect: load=listiter_next|builtin_sum|float_add data=kind:python level=DRAM|L3 memory=yes
# A list of numbers that lie in no order, added up.
import random
import time


def total(numbers):
    return sum(numbers)  # HOT


numbers = [number + 0.5 for number in range(3000000)]
random.seed(7)
random.shuffle(numbers)
found = 0
ends = time.time() + 5
while time.time() < ends:
    found += total(numbers)
print(found > 0)
