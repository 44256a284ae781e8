# Sorts objects by an attribute of theirs.
import random


class Item:
    def __init__(self, key):
        self.key = key


def by_key(item):
    return item.key  # waits


def main():
    random.seed(4)
    items = [Item(float(i)) for i in range(700_000)]
    for _ in range(6):
        random.shuffle(items)  # waits
        items.sort(key=by_key)  # waits
    print(items[0].key)


main()
