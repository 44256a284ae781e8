"""Where things are, the CPUs that programs run on, and what the machine is called."""
import atexit
import datetime
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BENCH = ROOT / "bench"


def _gleaner():
    built = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target") / "release/gleaner"
    return os.path.abspath(os.environ.get("GLEANER") or built)


GLEANER = _gleaner()
# All programs run in this folder: their files have no path in front.
WORK = pathlib.Path(tempfile.mkdtemp(prefix="gleaner-bench."))
# Memory that walks share, in huge pages if they are to be had.
AREA = pathlib.Path(f"/dev/shm/{WORK.name}")
# What is called python3 may be a script that looks for it.
PYTHON = os.path.realpath(sys.executable)


@atexit.register
def _leave():
    shutil.rmtree(WORK, ignore_errors=True)
    AREA.unlink(missing_ok=True)


def check():
    """Stops where there is not what each case needs."""
    if not os.access(GLEANER, os.X_OK):
        sys.exit(f"{GLEANER} does not exist: run 'make build' first")
    if os.cpu_count() == 1 or not all(shutil.which(command) for command in ("taskset", "chrt", "cc", "c++")):
        sys.exit("two CPUs, taskset, chrt, cc and c++ are needed")


def compact_memory():
    """Without this, the last program to start would get fewer huge pages than the first, and be
    slower for that alone. Works as root only."""
    try:
        pathlib.Path("/proc/sys/vm/compact_memory").write_text("1")
    except OSError:
        pass


def core_clock(cpu):
    """In Hz, as Gleaner measures it."""
    command = ["taskset", "-c", str(cpu), GLEANER, "measure", "clock", "--quick", "-q", "--json"]
    record = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.search(r'"core": \{[^}]*?"value": ([0-9.e+]+)', record)
    return float(found[1]) if found else float("nan")


def headline():
    """Version, date and machine, as a comment in Markdown."""
    told = subprocess.run([GLEANER, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    doctor = subprocess.run([GLEANER, "doctor"], capture_output=True, text=True, check=False).stdout
    line = lambda name: (re.search(rf"^\W+{name} +(.*)$", doctor, re.M) or ["", "?"])[1]
    processor = re.sub(r" *\(family.*", "", line("processor"))
    hypervisor = re.sub(r" *\[.*", "", line("hypervisor"))
    day = datetime.datetime.now(datetime.UTC).date()
    return f"<!-- {told}, {day}, {processor}, {os.cpu_count()} CPUs, {hypervisor} -->"
