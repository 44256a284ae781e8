"""The command line: bench/beside [-o PLACE] [KEY=VALUE...] CASE..."""
import argparse
import os
import pathlib
import signal
import sys

from . import cases, host, rounds, tables, ways


def _arguments():
    parser = argparse.ArgumentParser(prog="bench/beside", description="A primary beside scavengers, in several ways, in turns.")
    parser.add_argument("-o", metavar="PLACE", type=pathlib.Path, help="keep each table in this folder, or in this file.md")
    parser.add_argument("--list", action="store_true", help="list the cases, and how long each takes")
    parser.add_argument("words", metavar="CASE|KEY=VALUE", nargs="*",
                        help="cases by name, and keys of them that are to have another value: rounds=1 primaries=chase,tree")
    return parser.parse_intermixed_args()


def _listed():
    for name, keys in cases.all_cases().items():
        print(f"{name:18} {keys['time']}\n{'':18} {keys['question']}")


def _keep(place, name, text):
    if place.suffix == ".md":
        place.write_text(text)
        return
    place.mkdir(parents=True, exist_ok=True)
    (place / f"{name}.md").write_text(text)


def main():
    arguments = _arguments()
    if arguments.list:
        _listed()
        return
    changes = [word.split("=", 1) for word in arguments.words if "=" in word]
    names = [word for word in arguments.words if "=" not in word]
    if not names:
        sys.exit("which case? 'bench/beside --list' lists them")
    chosen = [case for name in names for case in cases.chosen(name, changes)]
    host.check()
    # So that the programs are ended, and files removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    failed = False
    for case in chosen:
        # What watches the programs does not run on the primary's CPU.
        os.sched_setaffinity(0, {case.other})
        results = rounds.run(case)
        text = f"{host.headline()}\n{tables.markdown(case, results, ways.of(case))}"
        print(f"## {case.name}\n\n{text}", flush=True)
        if arguments.o:
            _keep(arguments.o, case.name, text)
        failed |= results.failed
    sys.exit(1 if failed else 0)
