#!/usr/bin/env python3
"""The fault suite: a table of named cases on real processes. README.md lists its families.

    faults.py --list [--only PATTERN]...
    faults.py [--jobs N] [--only PATTERN]... [--keep]

Every case ends either with the bits of an undisturbed run, or with a clear error and nothing lost
(verdict.py). A case that fails prints the command that replays it alone.
"""
import argparse
import collections
import concurrent.futures
import fnmatch
import importlib
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

from stage import BIN, Defect, Skip, Stage, World

FAMILIES = ("kills", "evaluations", "damage", "disks", "commands", "impostors", "streams",
            "resources", "clocks", "ends", "foreign", "absences",
            "edited_scripts", "hangs", "changed_data", "pairs")


def table():
    cases = [case for name in FAMILIES for case in importlib.import_module(name).cases()]
    twice = [name for name, n in collections.Counter(c.name for c in cases).items() if n > 1]
    assert not twice, f"these names stand for two cases: {twice}"
    return cases


def chosen(cases, patterns):
    """The cases that match a pattern: a name, a part of one, or a form with * and ?."""
    return [case for case in cases if not patterns or any(
        pattern in case.name or fnmatch.fnmatch(case.name, pattern) for pattern in patterns)]


def play(case, world, keep=False):
    """Plays one case here. Returns its outcome as a dictionary."""
    scratch = tempfile.mkdtemp(prefix="lockstep-fault-")
    stage, begin, wrong = Stage(world, scratch), time.monotonic(), ""
    outcome = "passed"
    try:
        case.play(stage)
    except Skip as skip:
        outcome, wrong = "skipped", str(skip)
    except Defect as defect:
        outcome, wrong = "failed", str(defect)
    except Exception:  # a mistake of the case
        outcome, wrong = "failed", traceback.format_exc()
    if outcome == "failed" and keep:
        wrong += f"\nkept {scratch}"
        stage.kill_all()
    else:
        stage.clean()
    return {"name": case.name, "outcome": outcome, "wrong": wrong, "seen": stage.seen,
            "took": round(time.monotonic() - begin, 1)}


def play_apart(case, world, keep):
    """Plays a case in a process of its own, so that it cannot disturb another."""
    command = [sys.executable, __file__, "--inside", case.name, "--world", str(world.directory),
               *(["--keep"] if keep else [])]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=case.limit_s)
        return json.loads(ended.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        wrong = f"the case itself hangs: {case.limit_s} s"
    except (ValueError, IndexError):
        wrong = f"the case ended with {ended.returncode}: " + ended.stdout + ended.stderr
    return {"name": case.name, "outcome": "failed", "wrong": wrong, "seen": {}, "took": 0}


def tell(number, count, result):
    seen = " ".join(f"{key} {value}" for key, value in result["seen"].items())
    print(f"[{number}/{count}] {result['outcome']:7} {result['name']}  {result['took']} s  {seen}",
          flush=True)
    if result["outcome"] == "failed":
        print("    " + result["wrong"].strip().replace("\n", "\n    "))
        print(f"    replay: LOCKSTEP_BIN={BIN} tests/faults.sh --only '{result['name']}'",
              flush=True)
    elif result["outcome"] == "skipped":
        print(f"    {result['wrong']}", flush=True)


def summarize(results, seconds):
    print(f"\n{'family':12} {'cases':>6} {'passed':>7} {'failed':>7} {'skipped':>8} "
          f"{'same bits at once':>18} {'a clear error first':>20} {'longest to next step':>21}")
    families = collections.defaultdict(list)
    for result in results:
        families[result["name"].split("/")[0]].append(result)
    for family, mine in [*families.items(), ("all", results)]:
        count = collections.Counter(result["outcome"] for result in mine)
        passed = [result for result in mine if result["outcome"] == "passed"]
        at_once = sum(result["seen"].get("codes", [0])[0] == 0 for result in passed)
        longest = max((result["seen"].get("next step", 0) for result in mine), default=0)
        print(f"{family:12} {len(mine):6} {count['passed']:7} {count['failed']:7} "
              f"{count['skipped']:8} {at_once:18} {len(passed) - at_once:20} {longest:19.2f} s")
    print(f"{seconds:.0f} s")
    for result in results:
        if result["outcome"] == "failed":
            print(f"FAILED {result['name']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="names the cases")
    parser.add_argument("--only", action="append", default=[], metavar="PATTERN")
    parser.add_argument("--jobs", type=int, default=2, help="cases at a time (2)")
    parser.add_argument("--keep", action="store_true", help="keeps the directories of failed cases")
    parser.add_argument("--results", help="writes them there, a JSON line a case")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    parser.add_argument("--world", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    cases = table()
    if arguments.inside:
        case = next(case for case in cases if case.name == arguments.inside)
        print(json.dumps(play(case, World(arguments.world), arguments.keep)))
        return 0
    cases = chosen(cases, arguments.only)
    if not cases:
        print(f"faults: no case is named {' or '.join(arguments.only)}; see --list",
              file=sys.stderr)
        return 64
    if arguments.list:
        print("\n".join(case.name for case in cases))
        return 0
    return run_all(cases, arguments)


def run_all(cases, arguments):
    begin = time.monotonic()
    world = World(arguments.world or tempfile.mkdtemp(prefix="lockstep-faults-"))
    world.make()
    results = []
    try:
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            waiting = [pool.submit(play_apart, case, world, arguments.keep) for case in cases]
            for number, future in enumerate(concurrent.futures.as_completed(waiting), 1):
                results.append(future.result())
                tell(number, len(cases), results[-1])
    finally:
        if not arguments.world:
            shutil.rmtree(world.directory, ignore_errors=True)
    summarize(results, time.monotonic() - begin)
    if arguments.results:
        pathlib.Path(arguments.results).write_text(
            "".join(json.dumps(result) + "\n" for result in results))
    return int(any(result["outcome"] == "failed" for result in results))


if __name__ == "__main__":
    sys.exit(main())
