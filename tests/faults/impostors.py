"""impostor: a stranger is at an address that the run or its commands dial.

control    the port of a coordinator that was killed, while the next one starts
dead       the ports of a run whose processes are all dead, dialled by commands
metrics    the port of metrics.listen, at the start and at a take-over
peer       a stranger dials the sockets of workers
store      the server of the data fails, lies or stalls for a while
"""
import json
import os
import select
import signal
import socket
import subprocess
import time

from case import Case
from impostor import Impostor, refuse
from jobs import far_job
from kills import MOMENTS, pids_of
from ports import held_port
from stage import BIN, Defect, contextlib, kill_at_once, poll
from verdict import check_no_crash, expect_next_step, judge
import sockets

COMMAND_S = 60  # a command that dials an impostor ends by itself


def silent(line):
    line.settimeout(30)
    line.recv(1 << 16)
    time.sleep(2)


def garbage(line):
    line.sendall(bytes(range(256)) * 64)


def closes(line):
    pass


def closes_after(count):
    def act(line):
        line.sendall(b"LOCKSTP\x05\x0e\x00\x00\x00\x01"[:count])
        line.recv(1 << 16)
    return act


def endless(line):
    line.settimeout(3)
    with contextlib.suppress(OSError):
        for _ in range(2000):
            line.sendall(b"LOCKSTP\x05" + bytes(65_536))


def huge_frame(line):
    line.sendall(b"LOCKSTP\x05\xff\xff\xff\x7f\x01" + bytes(65_536))
    line.recv(1 << 16)


def web(line):
    line.recv(1 << 16)
    line.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")


def redirects(line):
    line.recv(1 << 16)
    line.sendall(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n")


BEHAVIOURS = {"silent": silent, "refuses": refuse, "garbage": garbage, "closes": closes,
              "closes-after-5-bytes": closes_after(5), "closes-after-9-bytes": closes_after(9),
              "endless": endless, "huge-frame": huge_frame, "http": web, "redirects": redirects}


def address_of(run, which):
    host, port = run.coordinator()[which].rsplit(":", 1)
    return host, int(port)


def take_over_from(stage, run, address, act):
    """Kills the coordinator, and takes its port before the next one starts."""
    killed = run.coordinator()["pid"]
    os.kill(run.process.pid, signal.SIGSTOP)  # stops the supervisor, which starts the next one
    os.kill(killed, signal.SIGKILL)
    impostor = Impostor(address, act)
    stage.cleanups.append(impostor.leave)
    os.kill(run.process.pid, signal.SIGCONT)
    poll(lambda: run.coordinator()["pid"] != killed, "another coordinator served", run)
    return impostor


def at_control(act):
    def on(stage):
        run = stage.start(workers=2, slot_ms=10)
        MOMENTS["middle"](stage, run, "")
        workers = run.workers()
        impostor = take_over_from(stage, run, address_of(run, "control"), act)
        expect_next_step(stage, run)
        poll(lambda: run.status()["term"] > 1, "it was asked", run)
        alive = pids_of(run, "workers")
        if not set(workers) <= set(alive) and not run.ended():
            raise Defect(f"the impostor ended workers: of {workers} live {alive}")
        stage.seen["met"] = impostor.met
        judge(stage, run, expect={0})
    return on


def replayed(stage):
    """The impostor sends the first coordinator's words to a caller, byte for byte."""
    run = stage.start(workers=2, slot_ms=10)
    MOMENTS["middle"](stage, run, "")
    address, said = address_of(run, "control"), []
    relayed = Impostor(("127.0.0.1", 0), relay_to(lambda: address, said))
    stage.cleanups.append(relayed.leave)
    line = socket.create_connection(relayed.listener.getsockname(), timeout=5)
    line.settimeout(2)
    with line, contextlib.suppress(OSError):
        line.sendall(b"LOCKSTP\x05")
        while line.recv(1 << 16):
            pass
    words = b"".join(said)
    if not words:
        raise Defect("the coordinator has said nothing: the case is wrong")
    take_over_from(stage, run, address, lambda caller: (caller.sendall(words), caller.recv(4096),
                                                        caller.sendall(words)))
    expect_next_step(stage, run)
    judge(stage, run, expect={0})


def relay_to(where, said=None):
    def act(line):
        with socket.create_connection(where(), timeout=5) as server:
            while True:
                ready, _, _ = select.select([line, server], [], [], 3)
                for end in ready:
                    words = end.recv(65_536)
                    if not words:
                        return
                    if end is server and said is not None:
                        said.append(words)
                    (server if end is line else line).sendall(words)
                if not ready:
                    return
    return act


def relays(stage):
    """The impostor relays to the next coordinator."""
    run = stage.start(workers=2, slot_ms=10)
    MOMENTS["middle"](stage, run, "")
    old = address_of(run, "control")

    def there():
        now = address_of(run, "control")
        if now == old:
            raise OSError("the next one is not there yet")
        return now
    take_over_from(stage, run, old, relay_to(there))
    expect_next_step(stage, run)
    judge(stage, run, expect={0})


class Dead:
    """A run whose processes are gone."""

    def __init__(self, run_dir):
        self.run_dir = run_dir

    def coordinator(self):
        return json.loads((self.run_dir / "coordinator.json").read_text())


def at_a_dead_run(words, act):
    """The command ends, without success and without a crash. The run can go on."""
    def on(stage):
        run_dir = stage.copy_of("killed")
        run, addresses = Dead(run_dir), {}
        for which in ("control", "http"):
            impostor = Impostor(("127.0.0.1", 0), act)
            stage.cleanups.append(impostor.leave)
            addresses[which] = "127.0.0.1:%d" % impostor.listener.getsockname()[1]
        (run_dir / "coordinator.json").write_text(json.dumps({**run.coordinator(), **addresses}))
        begin = time.monotonic()
        try:
            ended = subprocess.run([BIN / "lockstep", words[0], str(run_dir), *words[1:]],
                                   capture_output=True, text=True, timeout=COMMAND_S)
        except subprocess.TimeoutExpired:
            raise Defect(f"hangs: {words} took over {COMMAND_S} s") from None
        stage.seen["command"] = ended.returncode
        stage.seen["seconds"] = round(time.monotonic() - begin, 1)
        check_no_crash(run, ended.stdout + ended.stderr)
        reads = words[0] in ("report", "top", "audit", "ckpt", "runs")
        if (ended.returncode == 0) != reads:
            raise Defect(f"{words} ended with {ended.returncode}: {ended.stdout}{ended.stderr}")
        if ended.returncode != 0 and not (ended.stdout + ended.stderr).strip():
            raise Defect(f"{words} ended with {ended.returncode} without a word")
        judge(stage, stage.resume(), expect={0})
    return on


def at_metrics(act, when):
    def on(stage):
        port = held_port(stage.cleanups.append)
        job = stage.write_job(metrics={"listen": f"127.0.0.1:{port}"})
        if when == "start":
            impostor = Impostor(("127.0.0.1", port), act)
            stage.cleanups.append(impostor.leave)
            return judge(stage, stage.start(job=job), names=[port, "metrics.listen"],
                         mend=impostor.leave, again=lambda: stage.start(job=job))
        run = stage.start(job=job)
        MOMENTS["middle"](stage, run, "")
        take_over_from(stage, run, ("127.0.0.1", port), act)
        expect_next_step(stage, run)
        return judge(stage, run, expect={0})
    return on


def dials_a_worker(act, times):
    def on(stage):
        run = stage.start(workers=2)
        MOMENTS["first-step"](stage, run, "")
        names = [sockets.unix_name(worker) for worker in run.workers()]  # asking takes a while
        MOMENTS["middle"](stage, run, "")
        for name in names:
            for _ in range(times):
                line = socket.socket(socket.AF_UNIX)
                stage.cleanups.append(line.close)
                line.settimeout(0.2)
                with contextlib.suppress(OSError):
                    line.connect(name)
                    act(line)
        kill_at_once(pids_of(run, "worker"))  # the next generation meets them, too
        expect_next_step(stage, run)
        judge(stage, run, expect={0})
    return on


def at_the_store(fault, times):
    def on(stage):
        server, job = far_job(stage)
        left = [times]

        def faulty(*_):
            left[0] -= 1
            return fault if left[0] >= 0 else None
        server.fault = faulty
        server.elsewhere = "http://127.0.0.1:1/"

        def mend():
            left[0] = 0
            server.closing.set()
        run = stage.start(job=job, slot_ms=2)
        judge(stage, run, names=[server.url, f"127.0.0.1:{server.port}"], mend=mend,
              again=lambda: stage.start(job=job, slot_ms=0)
              if not (run.run_dir / "journal.db").exists() else stage.resume())
        stage.seen["faults"] = len(server.faults)
    return on


def cases():
    for name, act in BEHAVIOURS.items():
        yield Case(f"impostor/control/{name}/take-over", at_control(act))
    yield Case("impostor/control/replays/take-over", replayed)
    yield Case("impostor/control/relays/take-over", relays)
    for words in (["status"], ["scale", "3"], ["drain", "--member", "1"], ["stop"], ["report"],
                  ["audit"], ["top", "--once"]):
        for name in ("silent", "garbage", "closes-after-9-bytes", "http", "endless"):
            yield Case(f"impostor/dead-run/{name}/{words[0]}",
                       at_a_dead_run(words, BEHAVIOURS[name]))
    for when in ("start", "take-over"):
        for name in ("silent", "garbage", "http"):
            yield Case(f"impostor/metrics/{name}/{when}", at_metrics(BEHAVIOURS[name], when))
    for name, times, act in (("silent", 1, closes), ("silent", 200, closes),
                             ("closes", 50, socket.socket.close), ("garbage", 3, garbage),
                             ("huge-frame", 3, huge_frame), ("refuses", 3, refuse)):
        yield Case(f"impostor/peer/{name}-{times}-times/middle", dials_a_worker(act, times))
    for fault in ("500", "cut", "stall", "more", "wrong range", "no ranges", "another etag",
                  "redirect"):
        for times in (1, 10_000):
            yield Case(f"impostor/store/{fault.replace(' ', '-')}-{times}-times/first-start",
                       at_the_store(fault, times))
