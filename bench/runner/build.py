"""Builds and prepares what a case needs, once, in the working folder."""
import functools
import pathlib
import shlex
import subprocess
import sys

from . import host
from .cases import PROGRAMS


class Failed(Exception):
    """What could not be built, or a run that came to nothing."""


def _run(command, **options):
    done = subprocess.run(command, cwd=host.WORK, capture_output=True, text=True, check=False, **options)
    if done.returncode:
        raise Failed(f"{shlex.join(command)}: {done.stderr or done.stdout}")


@functools.cache
def built(source, name, flags="-O2"):
    """The source of bench/, as a program of this name."""
    compiler = "c++" if source.endswith(".cpp") else "cc"
    _run([compiler, *shlex.split(flags), "-w", "-o", name, str(host.BENCH / source), "-lm"])
    return f"./{name}"


def peer(name):
    return built(f"peers/{name}.c", name)


@functools.cache
def inputs():
    _run([sys.executable, str(host.BENCH / "inputs.py"), str(host.WORK)])


@functools.cache
def prepared(command):
    _run(["bash", "-c", command])


def program(name):
    """Whatever this program needs."""
    entry = PROGRAMS[name]
    if "source" in entry:
        own = next(word for word in shlex.split(entry["command"]) if word.startswith("./"))
        built(entry["source"], own.removeprefix("./"), entry.get("flags", "-O2"))
    if "tool" in entry:
        built(entry["tool"], pathlib.Path(entry["tool"]).stem)
    if "inputs" in entry:
        inputs()
    if "prepare" in entry:
        prepared(entry["prepare"])
