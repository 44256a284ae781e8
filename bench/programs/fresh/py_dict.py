# expect: load=_PyEval|listiter|unicodekeys|dict data=kind:python level=DRAM|L3 memory=yes
# Look-ups in a dictionary by text.
import random
import time


def look_up(prices, names):
    found = 0
    for name in names:
        found += prices[name]  # HOT
    return found


prices = {f"product {number}": number for number in range(1500000)}
random.seed(7)
names = list(prices)
random.shuffle(names)
names = names[:200000]
found = 0
ends = time.time() + 4
while time.time() < ends:
    found += look_up(prices, names)
print(found > 0)
