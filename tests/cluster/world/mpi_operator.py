"""The MPI operator. It makes pods with sshd, keys, a hostfile and host names for them, and a
launcher's pod once they are there. It makes another launcher when one has failed."""
import os
import signal
import subprocess

from harness import DEADLINE_S
from kube_pod import Pod

USER = 65532


class MpiJob:
    """Takes the place of a Job in Kubernetes.jobs."""

    def __init__(self, cluster, manifest):
        self.cluster, self.name, self.spec = cluster, manifest["metadata"]["name"], manifest["spec"]
        self.keys, self.etc = self._keys(), cluster.scratch / "mpi"
        replicas = self.spec["mpiReplicaSpecs"]
        self.workers, self.launcher = replicas["Worker"], replicas["Launcher"]
        self.pods, self.codes, self.made = {}, [], 0  # of launchers; -1 is the launcher's place
        self.failed = None
        self.is_done = False
        self._hostfile(self.workers["replicas"])
        for index in range(self.workers["replicas"]):
            self.pods[index] = self._worker(index)

    def _keys(self):
        keys = self.cluster.scratch / "keys"
        keys.mkdir()
        subprocess.run(["ssh-keygen", "-q", "-t", "ecdsa", "-N", "", "-f", keys / "id_ecdsa"],
                       check=True, timeout=DEADLINE_S)
        (keys / "authorized_keys").write_text((keys / "id_ecdsa.pub").read_text())
        for path in keys.iterdir():  # a secret's files for a pod with an fsGroup
            os.chown(path, 0, USER)
            os.chmod(path, 0o640)
        return keys

    def _hostfile(self, workers):
        self.etc.mkdir()
        slots = self.spec["slotsPerWorker"]
        (self.etc / "hostfile").write_text("".join(
            f"{self._dns(i)}.default.svc slots={slots}\n" for i in range(workers)))

    def _dns(self, index):
        return f"{self.name}-worker-{index}.{self.name}"

    def _pod(self, name, dns, template, variables):
        template = {**template, "spec": {**template["spec"]}}
        spec = template["spec"]
        spec["volumes"] = spec["volumes"] + [{"name": "ssh-auth", "host": self.keys},
                                             {"name": "mpi", "host": self.etc}]
        container = dict(spec["containers"][0])
        container["volumeMounts"] = container["volumeMounts"] + [
            {"name": "ssh-auth", "mountPath": self.spec["sshAuthMountPath"], "readOnly": True},
            {"name": "mpi", "mountPath": "/etc/mpi", "readOnly": True}]
        spec["containers"] = [container]
        return Pod(self.cluster, name, name, dns, template, {}, variables)

    def _worker(self, index):
        name = f"{self.name}-worker-{index}"
        pod = self._pod(name, self._dns(index), self.workers["template"], {})
        self.cluster.name_address(f"{self._dns(index)}.default.svc",
                                  self.cluster.hosts.address(pod.host))
        return pod

    def _launch(self):
        self.made += 1
        self.pods[-1] = self._pod(
            f"{self.name}-launcher-{self.made}", f"{self.name}-launcher.{self.name}",
            self.launcher["template"],
            {"OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile",
             "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
             "OMPI_MCA_plm_rsh_args": "-o ConnectionAttempts=10",
             "OMPI_MCA_mca_base_env_list": ";".join(self.cluster.variables)})

    def _is_ready(self, pod):
        out = subprocess.run([*self.cluster.hosts.on(pod.host), "ss", "-Hltn"], capture_output=True,
                             text=True, timeout=DEADLINE_S).stdout
        return ":2222" in out

    def tick(self):
        for index, pod in list(self.pods.items()):
            if pod.process.poll() is None:
                continue
            if index < 0:
                self.codes.append(pod.process.returncode)
                self.is_done = pod.process.returncode == 0
                if len(self.codes) > self.spec["runPolicy"]["backoffLimit"]:
                    self.failed = "BackoffLimitExceeded"
            pod.close()
            del self.pods[index]
            if index >= 0 and not self.is_done:
                self.pods[index] = self._worker(index)
        if self.is_done:
            for pod in self.pods.values():
                pod.close()
            self.pods = {}
        elif -1 not in self.pods and all(self._is_ready(pod) for pod in self.pods.values()):
            self._launch()

    def is_complete(self):
        return self.is_done

    def evict(self, index):
        """Evicts as the kubelet does: runs the preStop hook inside the pod, then sends TERM."""
        pod = self.pods[index]
        hook = pod.container["lifecycle"]["preStop"]["exec"]["command"]
        out = pod.execute(hook)
        os.kill(pod.pid(), signal.SIGTERM)
        return out
