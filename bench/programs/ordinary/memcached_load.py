"""Fills a memcached server on its first run, and gets at random: memcached_load.py PORT."""
import random
import socket
import sys

server = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
reader = server.makefile("rb")
NUMBER, BATCH = 1_000_000, 100


def get(keys):
    server.sendall(b"get " + b" ".join(keys) + b"\r\n")
    found = 0
    while not (line := reader.readline()).startswith(b"END"):
        reader.readline()
        found += 1
    return found


if not get([b"key:%d" % (NUMBER - 1)]):
    for at in range(0, NUMBER, BATCH):
        server.sendall(b"".join(b"set key:%d 0 0 16 noreply\r\n0123456789abcdef\r\n" % n for n in range(at, at + BATCH)))
    while not get([b"key:%d" % (NUMBER - 1)]):
        pass
random.seed(1)
found = sum(get([b"key:%d" % random.randrange(NUMBER) for _ in range(BATCH)]) for _ in range(6000))
sys.exit(found < 0.99 * 6000 * BATCH)
