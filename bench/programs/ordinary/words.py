counts = {}
for line in open("data", "rb"):
    for word in line.split():
        counts[word] = counts.get(word, 0) + 1
print(len(counts))
