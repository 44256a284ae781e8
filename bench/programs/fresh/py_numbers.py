# expect: load=dict|PyEval line=looked_up data=script:table.of.a.dict level=DRAM|L3 memory=yes
# A dictionary of five million numbers.
import time


def looked_up(owners, plots):
    found = 0
    for plot in plots:
        found += owners.get(plot, 0)  # HOT
    return found


count = 5_000_000
owners = {plot * 7 + 3: plot & 1023 for plot in range(count)}
plots = [at * 2654435761 % count * 7 + 3 for at in range(300_000)]
found = 0
ends = time.time() + 6
while time.time() < ends:
    found += looked_up(owners, plots)
print(found > 0)
