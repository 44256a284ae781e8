# Joins rows with an index of two million keys, in random order.
import random


def join(index, rows):
    total = 0
    for key in rows:
        total += index[key]  # waits
    return total


def main():
    random.seed(5)
    keys = [random.getrandbits(60) for _ in range(1_500_000)]
    index = {key: 1 for key in keys}
    rows = keys[::2]
    random.shuffle(rows)
    total = 0
    for _ in range(8):
        total += join(index, rows)
    print(total)


main()
