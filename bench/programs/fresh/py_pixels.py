# expect: load=take|mapiter|ARRAY|get|sum line=brightness data=script:. level=DRAM|L3 memory=yes
# An array of numpy, read in the order that another one gives.
import time

import numpy


def brightness(pixels, places):
    total = 0
    for part in numpy.array_split(places, 16):
        total += pixels[part].sum()  # HOT
    return total


pixels = numpy.arange(40_000_000, dtype=numpy.int64) & 255
places = numpy.random.default_rng(3).integers(0, pixels.size, 4_000_000)
total = 0
ends = time.time() + 6
while time.time() < ends:
    total += brightness(pixels, places)
print(total > 0)
