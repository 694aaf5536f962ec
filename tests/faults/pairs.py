"""pair: two faults at once, or the second while the run still answers the first."""
import contextlib
import os
import signal
import subprocess
import time

from case import Case
from clocks import Clock
from commands import stand_still
from damage import NOT_ROOT, WAYS, resolve
from disks import broken
from evaluations import MIDDLE, evaluated, judge_all
from jobs import SCRIPT_STEPS, check_script_log, resume_script, start_script
from kills import MOMENTS, pids_of, send
from resources import CAUSES, CRASHES, disk, fill
from stage import BIN, LEASE_S, Skip, kill_at_once, log_events, poll, processes_of, shutil
from verdict import expect_next_step, judge, note_first_step

from nodes import Node  # noqa: I001 stage makes it importable

TWO_HOURS_S = 7200


@contextlib.contextmanager
def frozen(run, *roles, leases=2.5):
    """The roles' processes stand still meanwhile, for so many leases."""
    go_on = [stand_still(run, role) for role in roles]
    try:
        yield
        time.sleep(leases * LEASE_S)  # the fault itself: they stand still for so long
    finally:
        for one in reversed(go_on):
            one()


def kill(run, *roles):
    kill_at_once(sorted({pid for role in roles for pid in pids_of(run, role)}))


def frozen_and_killed(stopped, victims):
    """The process that would answer the death stands still."""
    def on(stage):
        run = stage.start(workers=3)
        MOMENTS["middle"](stage, run, "")
        with frozen(run, stopped):
            kill(run, victims)
        expect_next_step(stage, run)
        judge(stage, run, expect={0})
    return on


def full_disk(moment, *victims, stopped=()):
    """The run has to write the death down, and the disk has no room."""
    def on(stage):
        place = disk(stage, "size=80m")
        run = stage.start(job=stage.write_job(**CRASHES))
        MOMENTS[moment](stage, run, "")
        with frozen(run, *stopped, leases=2.5 if stopped else 0):
            empty = fill(place)
            kill(run, *victims)
        judge(stage, run, names=CAUSES, mend=empty)
    return on


def full_disk_of_script(*victims):
    def on(stage):
        place = disk(stage, "size=80m")
        run = start_script(stage, slot_ms=20)
        note_first_step(stage, run)
        poll(lambda: run.steps() >= SCRIPT_STEPS // 3, "a third of it", run)
        empty = fill(place)
        kill(run, *victims)
        stage.may_abort = True  # a refused script shows where it stood
        judge(stage, run, names=CAUSES, mend=empty, again=lambda: resume_script(stage))
        check_script_log(run)
    return on


def agent_replaced_at_the_end(stage):
    """The agent dies while the coordinator ends. The next agent finds no coordinator, and no
    process waits for its scripts as for scripts that have trained."""
    run = start_script(stage, slot_ms=20)
    note_first_step(stage, run)
    coordinators = pids_of(run, "coordinator")
    send(coordinators, signal.SIGSTOP)
    old = pids_of(run, "agent")
    kill_at_once(old)
    fresh = poll(lambda: set(pids_of(run, "agent")) - set(old), "there was another agent", run)
    send(fresh, signal.SIGSTOP)
    for number in (signal.SIGTERM, signal.SIGCONT):
        send(coordinators, number)
    poll(lambda: not pids_of(run, "coordinator"), "the coordinator ended", run)
    send(fresh, signal.SIGCONT)
    judge(stage, run, again=lambda: resume_script(stage))
    check_script_log(run)


def stop_on_full_disk(stage):
    """The checkpoint that a stop writes has no room."""
    place = disk(stage, "size=80m")
    run = stage.start(job=stage.write_job(**CRASHES))
    MOMENTS["middle"](stage, run, "")
    empty = fill(place)
    run.process.send_signal(signal.SIGTERM)
    judge(stage, run, names=CAUSES, mend=empty)


def writer_frozen_in_checkpoint(victim):
    """The writer goes on when the others have started the next generation, or the next
    coordinator."""
    def on(stage):
        run = stage.start(workers=3)
        note_first_step(stage, run)
        writer = run.workers()[0]
        MOMENTS["checkpoint"](stage, run, "")
        begun = len(log_events(run.run_dir, "generation_started"))
        send([writer], signal.SIGSTOP)
        kill(run, victim)
        poll(lambda: len(log_events(run.run_dir, "generation_started")) > begun,
             "the others had begun another generation", run)
        send([writer], signal.SIGCONT)
        expect_next_step(stage, run)
        judge(stage, run, expect={0})
    return on


def writer_dies_and(victim, call):
    """The writer dies in a checkpoint that no other process knows of yet."""
    def on(stage):
        run = stage.start(workers=3, env=broken(stage, "step-0000000080", call, "1", "die"))
        note_first_step(stage, run)
        writer = run.workers()[0]
        poll(lambda: writer not in pids_of(run, "workers"), "its writer died", run)
        kill(run, victim)
        expect_next_step(stage, run)
        judge(stage, run, expect={0})
    return on


def drain_in_evaluation(victim):
    """One leaves and one dies while all evaluate."""
    def on(stage):
        stage.be_patient()
        run = stage.start(workers=3)
        note_first_step(stage, run)
        members = run.status()["members"]
        pids = {member["rank"]: member["pid"] for member in members}
        leaver = next(member for member in members if member["rank"] == 2)
        poll(lambda: evaluated(run, MIDDLE), f"the evaluation after step {MIDDLE}", run)
        time.sleep(0.06)  # the next evaluation begins about 100 ms after it
        order = subprocess.Popen([BIN / "lockstep", "drain", run.run_dir, "--member",
                                  str(leaver["id"])], stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True)
        time.sleep(0.04)
        kill_at_once([pids[victim]])
        stage.seen["ordered"] = order.wait(150)
        judge_all(stage, run)
    return on


def clock_set(victims, moment, stopped=()):
    """The clock goes back by two hours, as when a machine's wrong time zone is corrected."""
    def on(stage):
        clock = Clock(stage)
        run = stage.start(env=clock.env)
        MOMENTS[moment](stage, run, "worker")
        with frozen(run, *stopped, leases=2.5 if stopped else 0):
            clock.set(-TWO_HOURS_S)
            kill(run, *victims)
        if "everyone" in victims:
            run.was_killed = True
        else:
            expect_next_step(stage, run)
        judge(stage, run, again=lambda: stage.resume(env=clock.env))
    return on


def rights(what, mode, victim):
    """The rights of a directory change, and then a process dies whose successor has to use it."""
    def on(stage):
        if shutil.which("setpriv") is None:
            raise Skip("there is no setpriv")
        run = stage.start(prefix=NOT_ROOT if os.geteuid() == 0 else ())
        MOMENTS["middle"](stage, run, "")
        path = run.run_dir / what
        before = path.stat().st_mode & 0o7777
        if mode & 0o002:
            for parent in (path.parent, run.run_dir, stage.scratch):  # so that others may enter
                parent.chmod(parent.stat().st_mode | 0o055)
        path.chmod(mode)
        kill(run, victim)
        judge(stage, run, names=[path, path.name, run.run_dir], mend=lambda: path.chmod(before))
    return on


def damaged_and_killed(name, way, victims):
    """The newest checkpoint is damaged, and then the run needs it."""
    def on(stage):
        run = stage.start(workers=2)
        MOMENTS["middle"](stage, run, "")
        path = resolve(run.run_dir, name)
        stage.may_rewind = True  # to the checkpoint before it
        WAYS[way](path)
        kill(run, victims)
        run.was_killed = victims == "everyone"
        judge(stage, run, names=[path, path.name])
    return on


def one_host_after_another(stage):
    """The host with the coordinator is lost, and then the host that took over. No supervisor but
    its own watches the third host."""
    run = stage.start(workers=1, slot_ms=40, job=stage.write_job(checkpoint={"every_steps": 20}))
    note_first_step(stage, run)
    first = processes_of(run.run_dir)
    nodes = [Node(run, name, 1) for name in ("second", "third")]
    for node in nodes:
        stage.cleanups.append(lambda agent=node.agent: (agent.kill(), agent.wait()))
    poll(lambda: run.status()["standbys"] == 2, "their workers stood by", run, pause_s=0.1)
    subprocess.run([BIN / "lockstep", "scale", run.run_dir, "3"], check=True, capture_output=True)
    run.wait_for_workers(3)
    terms = len(os.listdir(run.run_dir / "terms"))
    kill_at_once(first)
    taken = poll(lambda: len(os.listdir(run.run_dir / "terms")) > terms
                 and pids_of(run, "coordinator"), "one of them took over", timeout_s=120)
    takes_over = next(node for node in nodes if parent(taken[0]) == node.agent.pid)
    kill_at_once([pid for pid in processes_of(run.run_dir)
                  if pid in (taken[0], takes_over.agent.pid) or parent(pid) == takes_over.agent.pid])
    last = next(node for node in nodes if node is not takes_over)
    run.process.wait()
    run.process = last.agent
    judge(stage, run, expect={0})


def parent(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as stat:
        return int(stat.read().rsplit(")", 1)[1].split()[1])
    return None


def cases():
    for stopped, victims in (("coordinator", "worker"), ("coordinator", "workers"),
                             ("coordinator", "agent"), ("agent", "worker"), ("agent", "coordinator"),
                             ("worker", "coordinator"), ("workers", "coordinator"),
                             ("supervisor", "coordinator"), ("supervisor", "agent")):
        yield Case(f"pair/{stopped}-frozen+{victims}-killed/middle",
                   frozen_and_killed(stopped, victims))
    for victims in ("worker", "workers", "coordinator", "agent"):
        for moment in ("checkpoint", "middle"):
            yield Case(f"pair/full-disk+{victims}-killed/{moment}", full_disk(moment, victims))
        yield Case(f"pair/coordinator-frozen+full-disk+{victims}-killed/middle",
                   full_disk("middle", victims, stopped=("coordinator",)))
    yield Case("pair/coordinator-frozen+full-disk/middle",
               full_disk("middle", stopped=("coordinator",)))
    for victims in ("coordinator", "agent"):
        yield Case(f"pair/full-disk+{victims}-killed/script", full_disk_of_script(victims))
    yield Case("pair/full-disk/script", full_disk_of_script())
    yield Case("pair/agent-killed+coordinator-stops/script", agent_replaced_at_the_end)
    yield Case("pair/full-disk+stop/middle", stop_on_full_disk)
    for victim in ("coordinator", "agent", "worker"):
        yield Case(f"pair/writer-frozen+{victim}-killed/checkpoint",
                   writer_frozen_in_checkpoint(victim))
        for call in ("sync", "name"):
            yield Case(f"pair/writer-dies-in-{call}+{victim}-killed/checkpoint",
                       writer_dies_and(victim, call))
    for victim in (0, 1):
        yield Case(f"pair/drain+rank-{victim}-killed/evaluation", drain_in_evaluation(victim))
    for victims, moment in (("everyone", "checkpoint"), ("workers", "middle"), ("agent", "checkpoint")):
        yield Case(f"pair/clock-back-2-hours+{victims}-killed/{moment}",
                   clock_set((victims,), moment))
    yield Case("pair/coordinator-frozen+clock-back-2-hours+worker-killed/middle",
               clock_set(("worker",), "middle", stopped=("coordinator",)))
    for what, name in (("", "run-directory"), ("checkpoints", "checkpoints"), ("terms", "terms"),
                       ("logs", "logs")):
        for mode, how in ((0o500, "not-writable"), (0o000, "no-rights"), (0o777, "open-to-others")):
            for victim in ("coordinator", "agent") if what in ("", "terms") else ("workers",):
                yield Case(f"pair/{name}-{how}+{victim}-killed/middle", rights(what, mode, victim))
    for name, way in (("newest/model.safetensors", "flip-middle"), ("newest/manifest.json", "half"),
                      ("newest/optimizer.safetensors", "deleted")):
        for victims in ("workers", "everyone"):
            yield Case(f"pair/{name}-{way}+{victims}-killed/middle",
                       damaged_and_killed(name, way, victims))
    yield Case("pair/host-killed+next-host-killed/middle", one_host_after_another)
