"""A program's progress while it runs, through the file that bench/programs/common.h describes."""
import mmap
import struct
import time

PAGE = 4096
STEPS, WORKING, GO, STOP, PAUSE = range(5)
# As in bench/programs/latency.h.
PARTS = 64
LENGTHS = 40 * PARTS


class Progress:
    """The first page has the words; the pages behind it count answers by their length."""

    def __init__(self, path):
        self.file = open(path, "w+b")
        self.file.truncate(PAGE + 4 * LENGTHS)
        self.map = mmap.mmap(self.file.fileno(), PAGE + 4 * LENGTHS)

    def word(self, which):
        return struct.unpack_from("Q", self.map, 8 * which)[0]

    def set(self, which, value):
        struct.pack_into("Q", self.map, 8 * which, value)

    def steps(self):
        return self.word(STEPS)

    def works(self):
        return bool(self.word(WORKING) and self.word(STEPS))

    def answers(self):
        return bytes(self.map[PAGE:PAGE + 4 * LENGTHS])

    def close(self):
        self.map.close()
        self.file.close()


def all_work(progresses, alive, seconds=120):
    """Waits until all of them made progress; whether they did."""
    end = time.monotonic() + seconds
    while not all(progress.works() for progress in progresses):
        if time.monotonic() > end or not alive():
            return False
        time.sleep(0.02)
    return True


def end_of(part):
    """The longest answer that is counted there, in nanoseconds."""
    octave = 0 if part < PARTS else part // (PARTS // 2) - 1
    return (part - octave * (PARTS // 2) + 1) << octave


def counts(answers):
    return struct.unpack(f"{LENGTHS}I", answers)


def percentile(lengths, share):
    """In microseconds; nothing if nothing was answered."""
    above, limit = 0, sum(lengths) * (1 - share)
    for part in range(LENGTHS - 1, -1, -1):
        above += lengths[part]
        if above > limit:
            return end_of(part) / 1e3
    return None
