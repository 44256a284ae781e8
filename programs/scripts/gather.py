# Adds up numbers that a list refers to, in random order.
import random


def gather(numbers, order):
    total = 0
    for place in order:
        total += numbers[place]  # waits
    return total


def main():
    random.seed(1)
    numbers = [float(i) for i in range(3_000_000)]
    order = list(range(3_000_000))
    random.shuffle(order)
    total = 0
    for _ in range(8):
        total += gather(numbers, order)
    print(total)


main()
