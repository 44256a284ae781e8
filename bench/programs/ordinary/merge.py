import numpy
import pandas

random = numpy.random.default_rng(1)
left = pandas.DataFrame({"k": random.integers(0, 1500000, 1000000), "v": numpy.arange(1000000)})
right = pandas.DataFrame({"k": random.permutation(1500000)[:1000000], "w": numpy.arange(1000000)})
joined = left.merge(right, on="k")
print(len(joined), int((joined.v + joined.w).sum()), len(joined.groupby("k").v.max()))
