#!/usr/bin/env python3
"""The counts of deploy/SIZING.md: series of /metrics and written bytes, by number of members.

    tests/bench/counts.py series [--members 10,512,513,10000]
    tests/bench/counts.py records [--members 1,8] [--batch-steps 100] [--steps 2000]
    tests/bench/counts.py records --members 1024 --batch-steps 10 --steps 20
    tests/bench/counts.py run [--members 1,2,4] [--steps 1000] [--checkpoints 200]

series and records: a real coordinator and members that only talk (load_members.h). The coordinator
waits for one more member, which does not come, so no member has a rank; or all come and report
records of steps that they did not compute.
run: `lockstep run` on made-up images. Counts do not depend on the machine's speed, except for
records: workers batch them by time as well (200 ms), so slow steps make small batches; see
--batch-steps.
Everything stays on loopback.
"""
import argparse
import json
import pathlib
import sqlite3
import subprocess
import sys
import time
import urllib.request

from load import Load, allow_descriptors, memory_kb

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
from harness import synthetic_dataset  # noqa: E402


def series_at(address):
    """Series, families and bytes of an address's /metrics."""
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=60) as answer:
        text = answer.read().decode()
    lines = text.splitlines()
    return {"series": sum(not line.startswith("#") for line in lines),
            "families": sum(line.startswith("# TYPE") for line in lines), "bytes": len(text)}


def journal_of(run_dir):
    """The contents of an ended run's journal, by table, and the sizes of its files."""
    database = sqlite3.connect(run_dir / "journal.db")
    count, size = database.execute(
        "SELECT count(*), coalesce(sum(length(records)), 0) FROM record_batches").fetchone()
    steps, folds = (database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
                    for table in ("steps", "folds"))
    pages = database.execute("SELECT page_count * page_size FROM pragma_page_count, "
                             "pragma_page_size").fetchone()[0]
    database.close()
    return {"steps": steps, "folds": folds, "batches": count, "batch_bytes": size,
            "journal_bytes": pages, "history_bytes": (run_dir / "history.jsonl").stat().st_size}


def wait_for_lines(path, count):
    """The coordinator writes the history a little after it has acknowledged the records."""
    for _ in range(200):
        if path.read_bytes().count(b"\n") >= count:
            return
        time.sleep(0.05)
    raise SystemExit(f"{path} has not the {count} lines that it should have")


def per_step(journal, before, members):
    """Bytes a step of what grew, and a member's part of them."""
    steps = journal["steps"]
    durable = journal["journal_bytes"] - before + journal["history_bytes"]
    return {"journal_per_step": round((journal["journal_bytes"] - before) / steps, 1),
            "history_per_step": round(journal["history_bytes"] / steps, 1),
            "per_step_and_member": round(durable / steps / members, 1)}


def series(options, members):
    options.members = members
    load = Load(options)
    try:
        load.prepare(members + 1)
        coordinator = load.coordinator()
        address = json.loads((load.dir / "coordinator.json").read_text())["http"]
        load.events(load.generators("--burst", "1"), "burst")
        return {"members": members, **series_at(address),
                "most_memory_mb": round(memory_kb(coordinator.pid, "VmHWM") / 1024, 1)}
    finally:
        load.clean()


def records_of(options, members, steps):
    options.members = members
    load = Load(options)
    try:
        load.prepare(members, "--train-steps", steps)
        coordinator = load.coordinator()
        reported = load.events(load.generators("--train-steps", str(steps), "--batch-steps",
                                               str(options.batch_steps)), "reported")
        if sum(event["reported"] for event in reported) != members:
            raise SystemExit("not all records were acknowledged: give it fewer --steps")
        most_kb = memory_kb(coordinator.pid, "VmHWM")
        ranked = series_at(json.loads((load.dir / "coordinator.json").read_text())["http"])
        wait_for_lines(load.dir / "history.jsonl", steps)
        load.end()
        return (journal_of(load.dir), sum(event["record_bytes"] for event in reported), most_kb,
                ranked)
    finally:
        load.clean()


def records(options, members):
    """The bytes that steps add: the journal after many steps less the journal after one."""
    one, _, _, _ = records_of(options, members, 1)
    many, sent, most_kb, ranked = records_of(options, members, options.steps)
    many["steps"] -= 1
    many["history_bytes"] -= one["history_bytes"]
    return {"members": members, "steps": options.steps, "batch_steps": options.batch_steps,
            "batch_bytes_per_step": round(many["batch_bytes"] / options.steps, 1),
            **per_step(many, one["journal_bytes"], members), "journal_bytes": many["journal_bytes"],
            "sent_per_step_and_member": round(sent / options.steps / members, 1),
            "most_memory_mb": round(most_kb / 1024, 1), "series": ranked}


def run(options, members):
    load = Load(options)
    try:
        data = synthetic_dataset(load.dir.parent / "data", train=3000)
        job = {"job": "counts", "model": {"name": "mlp"}, "data": {"train": {"path": str(data)}},
               "train": {"global_batch": 64, "slots": 4, "max_steps": options.steps},
               "checkpoint": {"every_steps": options.checkpoints}, "optimizer": {"name": "adamw"}}
        path = load.dir.parent / "job.yaml"
        path.write_text(json.dumps(job))
        child = load.start([load.bin / "lockstep", "run", path, "--workers", members, "--run-dir",
                            load.dir / "run"], stdout=subprocess.DEVNULL)
        found = {}
        while child.poll() is None and not found.get("worker"):
            try:
                address = json.loads((load.dir / "run/coordinator.json").read_text())["http"]
                found["coordinator"] = series_at(address)
                with urllib.request.urlopen(f"http://{address}/sd", timeout=60) as answer:
                    targets = json.load(answer)
                for target in targets[1:]:
                    kind = "worker" if "local_rank" in target["labels"] else "agent"
                    found[kind] = series_at(target["targets"][0])
            except (OSError, ValueError, KeyError):
                pass
        if child.wait(600) != 0:
            raise SystemExit(f"the run ended with {child.returncode}")
        journal = journal_of(load.dir / "run")
        checkpoints = sorted((load.dir / "run/checkpoints").iterdir())
        size = sum(file.stat().st_size for file in checkpoints[-1].iterdir())
        return {"members": members, "steps": options.steps, "series": found, **journal,
                **per_step(journal, 0, members), "checkpoint_bytes": size}
    finally:
        load.clean()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("series", "records", "run"))
    parser.add_argument("--members")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--batch-steps", type=int, default=100)
    parser.add_argument("--checkpoints", type=int, default=200, help="steps between two")
    parser.add_argument("--bin", default="build/release/bin")
    options = parser.parse_args()
    options.processes, options.seconds, options.tls = 2, 1, False
    default = {"series": "10,512,513,10000", "records": "1,8", "run": "1,2,4"}[options.what]
    options.steps = options.steps or {"records": 2000, "run": 1000}.get(options.what)
    for members in map(int, (options.members or default).split(",")):
        allow_descriptors(members)
        print(json.dumps(globals()[options.what](options, members)), flush=True)


if __name__ == "__main__":
    main()
