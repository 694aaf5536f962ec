"""A pod as the kubelet starts it: its variables from the downward API, its volumes, its container's
process 1 (pod_root.py), and the two ways in which it ends."""
import contextlib
import os
import pathlib
import re
import signal
import subprocess

from harness import DEADLINE_S
from pod_root import PodRoot, first_process


class Pod:
    """One pod of an index of a Job. Others find it under the name `dns`."""

    def __init__(self, cluster, name, hostname, dns, template, labels, variables):
        self.cluster, self.name, self.dns = cluster, name, dns
        self.labels = {**template.get("metadata", {}).get("labels", {}), **labels}
        self.spec = template["spec"]
        self.container = self.spec["containers"][0]
        self.host = cluster.take_host()
        self.output = cluster.scratch / f"{name}.out"
        self.directory = cluster.scratch / "pods" / cluster.new_id()  # names can come again
        self.is_evicted = False
        cluster.name_address(dns, cluster.hosts.address(self.host))
        root = PodRoot(self.directory, cluster.etc_hosts, hostname, self._mounts(),
                       self.container["securityContext"], self.spec["securityContext"])
        # By `env`, because only the pod's own root has what they may name.
        command = ["env", *cluster.variables, *self.container["command"],
                   *self.container.get("args", [])]
        self.process = root.start(cluster.hosts.on(self.host), command, self._env(variables),
                                  self.output)

    def _env(self, variables):
        env = dict(variables)
        for entry in self.container.get("env", []):
            value = entry.get("value")
            if value is None:
                value = self._field(entry["valueFrom"]["fieldRef"]["fieldPath"])
            env[entry["name"]] = re.sub(r"\$\((\w+)\)", lambda m: env.get(m[1], m[0]), value)
        return env

    def _field(self, path):
        if path == "metadata.name":
            return self.name
        return self.labels[re.fullmatch(r"metadata\.labels\['(.+)'\]", path)[1]]

    def _mounts(self):
        sources = {v["name"]: self.cluster.volume(v, self.directory) for v in self.spec["volumes"]}
        return [*((sources[m["name"]], m["mountPath"], m.get("readOnly", False))
                  for m in self.container["volumeMounts"]), *self.cluster.image]

    def pid(self):
        return first_process(self.process)

    def is_confined(self):
        """True if the kernel shows process 1 without root, capabilities and new privileges."""
        status = pathlib.Path(f"/proc/{self.pid()}/status").read_text()
        return (re.search(r"^Uid:\s+65532\s+65532\s+65532", status, re.M) is not None
                and re.search(r"^CapBnd:\s+0+$", status, re.M) is not None
                and re.search(r"^NoNewPrivs:\s+1$", status, re.M) is not None)

    def execute(self, command):
        """Runs a command as `kubectl exec`, a probe or a hook does."""
        user = self.spec["securityContext"]
        return subprocess.run(["nsenter", "-t", str(self.pid()), "--all", "--root", "--wd", "setpriv",
                               "--reuid", str(user["runAsUser"]), "--regid", str(user["runAsGroup"]),
                               "--clear-groups", *command], capture_output=True, text=True,
                              timeout=DEADLINE_S)

    def kill(self):
        """Loses the machine: no process in the pod has time to act."""
        os.kill(self.pid(), signal.SIGKILL)

    def terminate(self):
        """Evicts as the kubelet does: signals process 1, and waits for its grace time."""
        self.is_evicted = True
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid(), signal.SIGTERM)

    def close(self):
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError, TypeError):
                os.kill(self.pid(), signal.SIGKILL)
        self.process.wait()
        self.cluster.free_host(self.host)

    def text(self):
        return self.output.read_text(errors="replace")
