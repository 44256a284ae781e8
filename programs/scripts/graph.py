# Goes round objects that refer to one another, in random order.
import random


class Node:
    __slots__ = ("next", "value")

    def __init__(self, value):
        self.value = value
        self.next = None


def follow(node, steps):
    while steps:
        node = node.next  # waits
        steps -= 1
    return node


def main():
    random.seed(2)
    nodes = [Node(i) for i in range(1_000_000)]
    random.shuffle(nodes)
    for i in range(len(nodes)):
        nodes[i].next = nodes[i - 1]
    node = nodes[0]
    for _ in range(120):
        node = follow(node, 100_000)
    print(node.value >= 0)


main()
