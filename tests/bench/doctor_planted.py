"""Does `lockstep doctor` name planted bottlenecks? Plants each of five, so many times:

  python3 tests/bench/doctor_planted.py [--times 5] [--seconds 8] [--only storage,none]

Prints a table of the named bottlenecks, and the rates that decided them. Ends with 1 if one was
named wrong. LOCKSTEP_BIN as for the tests of real processes, which plant the same.
"""
import argparse
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
import doctor_world  # noqa: E402
from harness import scratch_directory  # noqa: E402


def examine(planted, seconds):
    scratch = scratch_directory()
    temporary = scratch / "tmp"
    temporary.mkdir()
    job, mount = doctor_world.PLANTED[planted](scratch)
    try:
        return doctor_world.examine(job, temporary=temporary, seconds=seconds)
    finally:
        if mount is not None:
            mount.close()
        shutil.rmtree(scratch, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=doctor_world.DOCTOR_S)
    parser.add_argument("--only", default=",".join(doctor_world.PLANTED))
    options = parser.parse_args()
    wrong = 0
    print("| planted | named | raw, cold | decode | loader, cold | loader | trainer | t(2B)/t(B) |")
    print("|---|---|---|---|---|---|---|---|")
    for planted in options.only.split(","):
        for _ in range(options.times):
            found = examine(planted, options.seconds)
            rates = {rung["name"]: rung["samples_per_second"] for rung in found["rungs"]}
            named = found["finding"]["fault"]
            wrong += named != planted
            figures = [f"{rates[name]:,.0f}" if name in rates else "–"
                       for name in ("raw_cold", "decode", "loader_cold", "loader", "trainer")]
            growth = found["double_step_s"] / found["step_s"]
            print(f"| {planted} | {named} | " + " | ".join(figures) + f" | {growth:.2f} |",
                  flush=True)
    print(f"\n{wrong} named wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
