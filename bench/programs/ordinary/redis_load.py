"""Fills a redis server on its first run, and gets at random: redis_load.py PORT."""
import random
import socket
import sys

server = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
reader = server.makefile("rb")
word = lambda text: b"$%d\r\n%s\r\n" % (len(text), text)


def ask(commands, number):
    server.sendall(commands)
    answers = []
    for _ in range(number):
        line = reader.readline()
        if line.startswith(b"$") and not line.startswith(b"$-1"):
            line = reader.readline()
        answers.append(line)
    return answers


def several(name, arguments):
    return b"".join(b"*%d\r\n%s%s" % (1 + len(each), word(name), b"".join(map(word, each))) for each in arguments)


NUMBER, BATCH = 1_000_000, 500
[size] = ask(b"*1\r\n" + word(b"DBSIZE"), 1)
if int(size[1:]) < NUMBER:
    for at in range(0, NUMBER, BATCH):
        ask(several(b"SET", [(b"key:%d" % n, b"value of %d, and some more" % n) for n in range(at, at + BATCH)]), BATCH)
random.seed(1)
found = 0
for _ in range(1200):
    keys = [(b"key:%d" % random.randrange(NUMBER),) for _ in range(BATCH)]
    found += sum(answer.startswith(b"value") for answer in ask(several(b"GET", keys), BATCH))
sys.exit(found != 1200 * BATCH)
