# Asks of each number whether it is in a set of two million others.


def common(members, numbers):
    found = 0
    for number in numbers:
        if number in members:  # waits
            found += 1
    return found


count = 2_000_000
members = {number * 11 for number in range(count)}
numbers = [at * 2654435761 % count * 5 for at in range(400_000)]
found = 0
for _ in range(20):
    found += common(members, numbers)
print(found)
