# Counts letters of texts in random order.
import random


def count(words, order):
    total = 0
    for place in order:
        total += words[place].count("7")  # waits
    return total


def main():
    random.seed(6)
    words = [str(i) * 8 for i in range(1_200_000)]
    order = list(range(len(words)))
    random.shuffle(order)
    total = 0
    for _ in range(4):
        total += count(words, order)
    print(total)


main()
