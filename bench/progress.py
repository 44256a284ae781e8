# What the scripts share that run a program with a file for its progress (programs/common.h) in
# their working directory.
import struct
import subprocess
import time

CPU = ["taskset", "-c", "0"]


def steps():
    with open("progress", "rb") as file:
        return struct.unpack("Q", file.read(8))[0]


def forget():
    with open("progress", "wb") as file:
        file.truncate(4096)


def pace_alone(command, begins, seconds):
    """Steps a second, in the seconds behind those in which it begins."""
    forget()
    process = subprocess.Popen(CPU + command.split(), stdout=subprocess.DEVNULL)
    time.sleep(begins)
    before, at = steps(), time.monotonic()
    time.sleep(seconds)
    rate = (steps() - before) / (time.monotonic() - at)
    process.kill()
    process.wait()
    return rate
