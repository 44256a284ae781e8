import numpy

random = numpy.random.default_rng(1)
values = random.random(1 << 24)
places = random.integers(0, len(values), 1 << 24)
print(f"{sum(values[places].sum() for _ in range(6)):.3f}")
