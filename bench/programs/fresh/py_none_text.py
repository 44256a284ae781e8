# expect: memory=no
# Text from numbers, and JSON of it.
import json
import time

ends = time.time() + 2
letters = 0
while time.time() < ends:
    items = [{"at": at, "name": f"item {at:05d}", "part": at / 7} for at in range(200)]
    letters += len(json.dumps(items))
print(letters > 0)
