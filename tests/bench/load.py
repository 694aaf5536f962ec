#!/usr/bin/env python3
"""10,000 members on one coordinator: time to join, memory a connection, heartbeats/s, latency, and
the time until all are back after kill -9 of the coordinator under that load.

    tests/bench/load.py [--members 10000] [--processes 2] [--tls] [--bin build/release/bin]

Needs 2 x members file descriptors in all (see `ulimit -Hn`). Everything stays on loopback.
"""
import argparse
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import tempfile
import time

TARGETS = {"joined": "<= 3 s, with TLS 10", "memory": "<= 16 KB, with TLS 64",
           "burst": ">= 20,000/s", "back": "<= 15 s"}


def memory_kb(pid, what):
    """`what`: VmRSS, the present size, or VmHWM, the largest so far."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(what):
            return int(line.split()[1])
    return 0


def cpu_s(pid):
    """Processor time of a process, user and system."""
    words = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


class Load:
    def __init__(self, options):
        self.options = options
        self.bin = pathlib.Path(options.bin)
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="lockstep-load-")) / "run"
        self.dir.mkdir()
        self.children = []
        self.tls = []
        if options.tls:
            self.tls = ["--tls", self.dir.parent / "tls"]
            subprocess.run([self.bin / "lockstep", "certs", self.tls[1], "--hosts", "127.0.0.1"],
                           check=True, stdout=subprocess.DEVNULL)

    def prepare(self, workers, *flags):
        subprocess.run([self.bin / "bench_members", "--run-dir", self.dir, "--prepare",
                        str(workers), *self.tls, *map(str, flags)], check=True)

    def start(self, args, **more):
        child = subprocess.Popen([str(a) for a in args], **more)
        self.children.append(child)
        return child

    def coordinator(self, *flags):
        with open(self.dir / "coordinator.out", "ab") as out:
            child = self.start([self.bin / "lockstep-coordinator", "--run-dir", self.dir, *flags],
                               stdout=out, stderr=out)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and child.poll() is None:
            try:
                if json.loads((self.dir / "coordinator.json").read_text())["pid"] == child.pid:
                    return child
            except (OSError, ValueError):
                pass
            time.sleep(0.01)
        raise SystemExit("the coordinator did not start:\n" + (self.dir / "coordinator.out").read_text())

    def generators(self, *flags):
        n, processes = self.options.members, min(self.options.processes, self.options.members)
        each = [n // processes + (i < n % processes) for i in range(processes)]
        return [self.start([self.bin / "bench_members", "--run-dir", self.dir, "--members", count,
                            "--first", sum(each[:i]), "--name", f"load{i}",
                            "--beat-seconds", self.options.seconds, *self.tls, *flags],
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                for i, count in enumerate(each)]

    def events(self, generators, name):
        """The next event `name` of every generator."""
        found = []
        for generator in generators:
            for line in generator.stdout:
                event = json.loads(line)
                if event["event"] == name:
                    found.append(event)
                    break
            else:
                raise SystemExit(f"a generator ended before '{name}'")
        return found

    def run(self):
        n = self.options.members
        self.prepare(n + 1)
        coordinator = self.coordinator()
        before_kb = memory_kb(coordinator.pid, "VmRSS")
        generators = self.generators()
        joined = self.events(generators, "joined")
        memory = (memory_kb(coordinator.pid, "VmRSS") - before_kb) / n
        joined_cpu_s = cpu_s(coordinator.pid)
        most_kb = memory_kb(coordinator.pid, "VmHWM")
        beats = self.events(generators, "beats")
        sent = sum(e["heartbeats"] for e in beats)
        burst = self.events(generators, "burst")
        burst_s = max(e["ms"] for e in burst) / 1000
        in_burst = sum(e["heartbeats"] for e in burst) - sent
        os.kill(coordinator.pid, signal.SIGKILL)
        coordinator.wait()
        killed = time.monotonic()
        again = self.coordinator("--take-over")
        back = self.events(generators, "back")
        back_s = time.monotonic() - killed
        report = {
            "members": n,
            "tls": self.options.tls,
            "joined_s": max(e["ms"] for e in joined) / 1000,
            "joined_cpu_s": joined_cpu_s,
            "join_round_trip_p99_ms": max(e["p99_us"] for e in joined) / 1000,
            "memory_kb_each": round(memory, 1),
            "most_memory_mb": round(most_kb / 1024, 1),
            "beats_round_trip_p50_ms": max(e["p50_us"] for e in beats) / 1000,
            "beats_round_trip_p99_ms": max(e["p99_us"] for e in beats) / 1000,
            "heartbeats_per_s": round(in_burst / burst_s),
            "back_s": round(back_s, 2),
            "back_members": sum(e["members"] for e in back),
            "targets": TARGETS,
        }
        print(json.dumps(report, indent=2))
        for generator in generators:
            generator.stdin.close()
        again.send_signal(signal.SIGTERM)
        for child in self.children:
            child.wait(60)

    def end(self):
        for child in self.children:
            if child.poll() is None:
                child.kill()
                child.wait()

    def clean(self):
        self.end()
        shutil.rmtree(self.dir.parent, ignore_errors=True)


def allow_descriptors(members):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if hard < members + 200:
        raise SystemExit(f"needs {members + 200} file descriptors a process, has {hard}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, default=10_000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--tls", action="store_true", help="control is mutual TLS")
    parser.add_argument("--seconds", type=int, default=10, help="at one heartbeat a second each")
    parser.add_argument("--bin", default="build/release/bin")
    options = parser.parse_args()
    allow_descriptors(options.members)
    load = Load(options)
    try:
        load.run()
    finally:
        load.clean()


if __name__ == "__main__":
    main()
