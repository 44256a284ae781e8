# expect: load=PyEval|Py line=ride data=script:objects level=DRAM|L3 memory=yes
# Objects that refer to one another, followed by their attributes.
import time


class Stop:
    def __init__(self, number):
        self.minutes = number % 5
        self.onward = None


def ride(stop, stops):
    minutes = 0
    while stops > 0:
        minutes += stop.minutes  # HOT
        stop = stop.onward  # HOT
        stops -= 1
    return stop, minutes


count = 1_000_003
line = [Stop(number) for number in range(count)]
for at in range(count):
    line[at * 600_011 % count].onward = line[(at + 1) * 600_011 % count]
stop, total = line[0], 0
ends = time.time() + 6
while time.time() < ends:
    stop, minutes = ride(stop, 200_000)
    total += minutes
print(total > 0)
