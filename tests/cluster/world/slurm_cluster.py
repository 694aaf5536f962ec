"""A real Slurm cluster on this machine: munged, slurmctld, and a slurmd for each node. Each slurmd
is in mount and UTS namespaces of its own, so every node has its own host name. All share the file
system and the loopback network. All files lie in one directory, and nothing of the machine's own
changes."""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time

from ports import held_port

NODES = 4
GPUS = 4  # of each node: device files that are /dev/null
DEADLINE_S = 60
PROGRAMS = {"slurmctld": "slurm-wlm", "slurmd": "slurm-wlm", "sbatch": "slurm-wlm",
            "munged": "munge", "unshare": "util-linux", "setpriv": "util-linux"}

# With credentials that last 5 s a job that was requeued begins again after 6 s instead of 121 s.
CONF = """
ClusterName=lockstep-test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={dir}/munge.socket,cred_expire=5
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=batch_sched_delay=0,sched_min_interval=100000,bf_interval=1
SlurmctldParameters=preempt_send_user_signal
SlurmdParameters=config_overrides
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobRequeue=1
{more}
ReturnToService=2
SlurmdTimeout=10
KillWait=5
StateSaveLocation={dir}/state
SlurmctldPidFile={dir}/slurmctld.pid
SlurmctldLogFile={dir}/slurmctld.log
SlurmdPidFile={dir}/%n/slurmd.pid
SlurmdLogFile={dir}/%n/slurmd.log
SlurmdSpoolDir={dir}/%n/spool
GresTypes=gpu
PartitionName=low Nodes=n[0-{last}] Default=YES PriorityTier=1 PreemptMode=REQUEUE GraceTime=5
PartitionName=high Nodes=n[0-{last}] PriorityTier=10 PreemptMode=OFF
"""


def why_not():
    """Why this machine cannot have such a cluster, as half a sentence; else empty."""
    for program, package in PROGRAMS.items():
        if shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin") is None:
            return f"there is no {program} (package {package})"
    if os.geteuid() != 0:
        return "a Slurm cluster needs root"
    probe = subprocess.run(["unshare", "-m", "-u", "hostname", "other"], capture_output=True,
                           text=True)
    if probe.returncode != 0:
        return "no namespaces can be made here: " + probe.stderr.strip()
    return ""


class SlurmCluster:
    """Lives until close(). Makes `directory`, readable by all as munged demands."""

    def __init__(self, directory, **settings):
        self.directory = pathlib.Path(directory)
        self.names = [f"n{i}" for i in range(NODES)]
        self.held = contextlib.ExitStack()  # the ports, until close()
        self.ports = [held_port(self.held.callback, "") for _ in range(1 + NODES)]
        self.processes = {}
        self.env = {**os.environ, "SLURM_CONF": str(self.directory / "slurm.conf"),
                    "PATH": os.environ["PATH"] + ":/usr/sbin"}
        try:
            self._write_files(settings)
            self._start()
        except BaseException:
            self.close()
            raise

    # ---- starting ----

    def _write_files(self, settings):
        for name in ["state", *(f"{node}/spool" for node in self.names)]:
            (self.directory / name).mkdir(parents=True)
        for name in ("job_state", "resv_state"):  # else slurmctld complains of their absence
            (self.directory / "state" / name).touch()
        key = self.directory / "munge.key"
        key.touch(mode=0o400)
        key.write_bytes(os.urandom(128))
        gpus = []
        for node in self.names:
            for i in range(GPUS):
                os.mknod(self.directory / node / f"nvidia{i}", 0o600 | 0o020000, os.makedev(1, 3))
            gpus.append(f"NodeName={node} Name=gpu "
                        f"File={self.directory}/{node}/nvidia[0-{GPUS - 1}]")
        (self.directory / "gres.conf").write_text("\n".join(gpus) + "\n")
        self._write_conf(settings)

    def _write_conf(self, settings):
        host = socket.gethostname()
        more = "\n".join(f"{key}={value}" for key, value in settings.items())
        text = CONF.format(host=host, dir=self.directory, controller_port=self.ports[0], more=more,
                           last=NODES - 1)
        for i, node in enumerate(self.names):
            text += (f"NodeName={node} NodeHostname={host} NodeAddr=127.0.1.{10 + i} "
                     f"Port={self.ports[1 + i]} CPUs=4 RealMemory=1000 Gres=gpu:{GPUS} "
                     "State=UNKNOWN\n")
        (self.directory / "slurm.conf").write_text(text)

    def _spawn(self, name, *argv):
        with open(self.directory / f"{name}.out", "ab") as out:
            self.processes[name] = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *argv],  # a test that is killed leaves none
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=self.env,
                start_new_session=True)

    def _start(self):
        where = str(self.directory)
        self._spawn("munged", "munged", "--foreground", "--key-file", where + "/munge.key",
                    "--socket", where + "/munge.socket", "--pid-file", where + "/munged.pid",
                    "--log-file", where + "/munged.log", "--seed-file", where + "/munged.seed")
        self.wait_for(lambda: (self.directory / "munge.socket").exists(), "munged listened")
        self._spawn("slurmctld", "slurmctld", "-D", "-i", "-c")
        for node in self.names:
            self.start_node(node)
        self.wait_for(self.is_idle, "all nodes were idle")

    def start_node(self, node):
        self._spawn(node, "unshare", "-m", "-u", "sh", "-c",
                    'hostname "$1" && exec slurmd -D -N "$1"', "node", node)

    # ---- looking at it ----

    def wait_for(self, condition, what, deadline_s=DEADLINE_S):
        """Polls, because Slurm has no other way to tell."""
        deadline = time.monotonic() + deadline_s
        while time.monotonic() < deadline:
            if condition():
                return
            for name, process in self.processes.items():
                if process.poll() is not None:
                    raise AssertionError(f"{name} ended ({process.returncode}) before {what}:\n"
                                         + self.words_of(name))
            time.sleep(0.05)
        raise AssertionError(f"waited {deadline_s} s until {what}:\n" + self.words_of("slurmctld"))

    def words_of(self, name):
        files = [self.directory / f"{name}.out", self.directory / f"{name}.log",
                 self.directory / name / "slurmd.log"]
        return "\n".join(path.read_text(errors="replace")[-2000:] for path in files
                         if path.is_file())

    def command(self, *words, env=None):
        """Runs a command of Slurm with these variables too, and returns its output."""
        done = subprocess.run(words, env={**self.env, **(env or {})}, capture_output=True, text=True,
                              timeout=DEADLINE_S)
        if done.returncode != 0:
            raise AssertionError(f"{' '.join(words)} ended with {done.returncode}: {done.stderr}")
        return done.stdout

    def states(self):
        """The nodes' states by name: "idle", "mixed", "down*"."""
        done = subprocess.run(["sinfo", "-N", "-h", "-o", "%N %t"], env=self.env,
                              capture_output=True, text=True, timeout=DEADLINE_S)
        return dict(line.split() for line in done.stdout.splitlines())

    def job(self, number):
        """The output of `scontrol show job`, by key."""
        text = self.command("scontrol", "show", "job", "-o", str(number))
        return dict(re.findall(r"(\S+?)=(\S*)", text))

    def make_idle(self):
        """Clears a test's remains for the next one: no job, no node that is down."""
        self.command("scancel", "--user", "root")
        for node in self.names:
            if node not in self.processes:
                self.start_node(node)
        self.wait_for(self.is_idle, "all was idle again")

    def is_idle(self):
        return (self.states() == {node: "idle" for node in self.names}
                and not self.command("squeue", "-h").strip())

    # ---- ending ----

    def processes_of(self, node):
        """Pids of slurmd and of everything that it has started: the processes with its
        host name."""
        uts = os.readlink(f"/proc/{self.processes[node].pid}/ns/uts")
        pids = []
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    if os.readlink(entry / "ns/uts") == uts:
                        pids.append(int(entry.name))
        return pids

    def lose(self, node, is_seen_later=False):
        """The power of a node fails: nothing on it has time for a last word. Slurm hears at once
        what it would find out after SlurmdTimeout."""
        pids = self.processes_of(node)
        for one in (signal.SIGSTOP, signal.SIGKILL):
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, one)
        self.processes.pop(node).wait()
        if not is_seen_later:
            self.command("scontrol", "update", f"nodename={node}", "state=down", "reason=lost")

    def close(self):
        for node in self.names:
            if node in self.processes and self.processes[node].poll() is None:
                self.lose(node, is_seen_later=True)
        for process in self.processes.values():
            process.kill()
            process.wait()
        self.processes = {}
        self.held.close()
