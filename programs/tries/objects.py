"""Goes through objects of an interpreter in random order, as programs with many of them do.

Faster with huge pages for what the program maps itself: python's small objects lie in arenas that
it maps, not in malloc's memory."""

import random


class Node:
    __slots__ = ("value", "next")


random.seed(1)
nodes = []
for number in range(2_000_000):
    node = Node()
    node.value, node.next = float(number), None
    nodes.append(node)
random.shuffle(nodes)
total = 0.0
for _ in range(3):
    for node in nodes:
        total += node.value
print(total)
