# expect: load=PyEval|Py line=weight_of data=script:objects level=DRAM|L3 memory=yes
# A list of objects that was put into no order.
import time


class Parcel:
    def __init__(self, number):
        self.number = number
        self.weight = number % 17


def weight_of(parcels):
    total = 0
    for parcel in parcels:  # HOT
        total += parcel.weight  # HOT
    return total


count = 1_500_007
made = [Parcel(number) for number in range(count)]
parcels = [made[at * 700_001 % count] for at in range(count)]
total = 0
ends = time.time() + 6
while time.time() < ends:
    total += weight_of(parcels)
print(total > 0)
