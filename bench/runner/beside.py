"""One primary and its scavengers, running in one way, until they are ended."""
import contextlib
import os
import pathlib
import shlex
import signal
import subprocess
import time

from . import build, host
from .build import Failed
from .cases import PROGRAMS
from .progress import GO, PAUSE, STOP, Progress, all_work


def words(case, name, number, count, rate):
    """The command of a program, by its template."""
    values = {
        "progress": f"progress.{number}", "number": number, "mib": case.size_of(name), "seconds": case.seconds,
        "count": count, "keys": case.keys, "rate": rate, "area": host.AREA, "python": host.PYTHON,
    }
    return [word.format(**values) for word in shlex.split(PROGRAMS[name]["command"])]


def on(cpu, *prefix):
    return ["taskset", "-c", str(cpu), *prefix]


def options(case, way, name, count):
    """The options of `gleaner harvest`."""
    values = {"count": count, "cpu": case.cpu, "other": case.other, "all": f"0-{os.cpu_count() - 1}"}
    told = " ".join([case.options, PROGRAMS[name].get("options", ""), way.options]).format(**values)
    return shlex.split(told)


def descendants(pid):
    found = []
    for path in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += [int(child) for child in path.read_text().split()]
    return found + [below for child in found for below in descendants(child)]


def moved(pid, counts):
    """Bytes that a program has written, or written and read; nothing if it has ended."""
    try:
        lines = pathlib.Path(f"/proc/{pid}/io").read_text().splitlines()
    except OSError:
        return None
    fields = dict(line.split(": ") for line in lines)
    return int(fields["wchar"]) + (int(fields["rchar"]) if counts == "moved" else 0)


def to_idle(pid, cpu):
    """All threads of a process, under SCHED_IDLE and on this CPU."""
    for task in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(OSError):
            os.sched_setscheduler(int(task), os.SCHED_IDLE, os.sched_param(0))
            os.sched_setaffinity(int(task), {cpu})


class Beside:
    """`scavenger` may be None, and then `count` only fills the primary's template."""

    def __init__(self, case, way, primary, scavenger, count, rate=0, dry=False):
        self.case, self.way, self.primary_name, self.scavenger = case, way, primary, scavenger
        self.count = 1 if way.kind == "two cores" else count
        if scavenger is None or way.kind in ("alone", "profiled"):
            self.count = 0
        self.threads, self.rate = count, rate
        self.started, self.progress, self.lives = [], [], []
        self.bytes, self.begin, self.until, self.before = {}, None, time.monotonic(), 0
        for name in filter(None, (primary, scavenger)):
            build.program(name)
        for old in host.WORK.glob("progress.*"):
            old.unlink()
        (host.WORK / "run.json").unlink(missing_ok=True)
        host.compact_memory()
        self.progress = [Progress(host.WORK / f"progress.{n}") for n in range(self.count + 1)]
        self.counts = PROGRAMS[scavenger].get("counts") if scavenger else None
        self.process = None
        try:
            self._start(dry)
        except BaseException:
            self.end()
            raise

    def _spawn(self, command, output, errors="errors"):
        with open(host.WORK / output, "wb") as out, open(host.WORK / errors, "wb") as err:
            process = subprocess.Popen(command, cwd=host.WORK, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        self.started.append(process)
        return process

    def _words(self, name, number):
        return words(self.case, name, number, self.threads, self.rate)

    def _start(self, dry):
        case, way = self.case, self.way
        own = self._words(self.primary_name, 0)
        front = on(case.cpu)
        if way.by_hand:
            files = [f"progress.{number}" for number in range(self.count + 1)]
            size, number = str(case.size_of(self.primary_name)), str(self.count + 1)
            if way.kind == "by hand, mapped":
                own = [build.peer("mapped"), size, number, str(host.AREA), *files]
            else:
                own = [build.peer("limit"), "own" if way.kind == "by hand" else "one", size, number, *files]
        elif way.kind == "profiled":
            front += [host.GLEANER, "profile", "-q", "--output", "profile.json", "--"]
        elif way.harvests:
            front += [host.GLEANER, "harvest", "-q", *options(case, way, self.primary_name, self.count)]
            front += ["--record", "run.json", "--scavenger-out", "scavenger.out"] + (["--dry-run"] if dry else [])
            for number in range(1, self.count + 1):
                front += ["--scavenger", shlex.join(self._words(self.scavenger, number))]
            front.append("--")
        else:
            for number in range(1, self.count + 1):
                self._start_scavenger(number)
            if way.kind != "alone" and self.counts == "steps":
                self._place()
        if "feed" in PROGRAMS[self.primary_name]:
            pipe = host.WORK / PROGRAMS[self.primary_name]["feed"][1]
            pipe.unlink(missing_ok=True)
            os.mkfifo(pipe)
        self.process = self._spawn(front + own, "primary.out")

    def _start_scavenger(self, number):
        """Where it counts steps, it sets up on the other CPU, at its full speed."""
        command = self._words(self.scavenger, number)
        if self.counts == "steps" or self.way.kind == "two cores":
            prefix = on(self.case.other)
        else:
            prefix = on(self.case.cpu, *(["chrt", "-i", "0"] if self.way.kind == "SCHED_IDLE" else ["nice", "-n", "19"]))
        process = self._spawn(prefix + command, f"scavenger.out{'' if number == 1 else number}", f"errors.{number}")
        self.lives.append(process.pid)

    def _place(self):
        if not all_work(self.progress[1:], lambda: all(process.poll() is None for process in self.started)):
            raise Failed(f"{self.scavenger} made no progress")
        for pid in self.lives:
            if self.way.kind == "SCHED_IDLE":
                to_idle(pid, self.case.cpu)
            elif self.way.kind == "nice 19":
                os.setpriority(os.PRIO_PROCESS, pid, 19)
                os.sched_setaffinity(pid, {self.case.cpu})

    def ready(self):
        """Waits until all make progress, as far as they tell."""
        counted = self.progress if PROGRAMS[self.primary_name]["pace"] == "steps" else self.progress[1:]
        if self.rate and PROGRAMS[self.primary_name].get("answers"):
            counted = self.progress[1:]
        if self.counts in (None, "steps") and not all_work(counted, lambda: self.process.poll() is None):
            raise Failed(f"not all programs made progress\n{self.errors()}")
        self.progress[0].set(GO, 1)
        if self.case.pin_homes and self.way.kind == "harvested":
            for pid in descendants(self.process.pid):
                with contextlib.suppress(OSError):
                    if os.sched_getscheduler(pid) == os.SCHED_IDLE:
                        to_idle(pid, self.case.cpu)
        time.sleep(self.case.settle)

    def errors(self):
        return (host.WORK / "errors").read_text(errors="replace").strip()

    def sleep(self, asleep):
        """Scavengers that count steps sleep, or go on."""
        for progress in self.progress[1:]:
            progress.set(PAUSE, int(asleep))

    def look(self):
        """Notes how far the scavengers are; to be called again and again where they count bytes."""
        if self.scavenger is None or self.counts == "steps":
            return
        if self.way.harvests and not self.lives:
            own, name = (self._words(program, 1)[0].split("/")[-1] for program in (self.primary_name, self.scavenger))
            found = sorted(pid for pid in descendants(self.process.pid) if _is_called(pid, name))
            # A primary of the same name started first.
            self.lives = found[1:] if own == name else found
        for pid in self.lives:
            done = moved(pid, self.counts)
            if done is not None:
                self.begin = self.begin or time.monotonic()
                self.bytes[pid], self.until = max(done, self.bytes.get(pid, 0)), time.monotonic()

    def done(self):
        """How much all scavengers did so far: steps, or bytes."""
        if self.counts == "steps":
            return sum(progress.steps() for progress in self.progress[1:])
        return sum(self.bytes.values())

    def end(self):
        """Ends all of them; a primary that was told to stop has some time for it."""
        for progress in self.progress[:1]:
            progress.set(STOP, 1)
        own = self.process
        if own and own.poll() is None:
            if PROGRAMS[self.primary_name]["pace"] != "steps":
                own.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                own.wait(20)
        for process in reversed(self.started):
            if process.poll() is None:
                process.kill()
            process.wait()
        for progress in self.progress:
            progress.close()
        self.progress = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()


def _is_called(pid, name):
    """Whether a process below a harvest is of this program. The kernel may cut its name; its command
    line is the primary's, whose address space it shares."""
    try:
        called = pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return False
    return bool(called) and name.startswith(called)
