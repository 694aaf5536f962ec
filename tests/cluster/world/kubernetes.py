"""The part of Kubernetes that a run meets: the Job controller, JobSet's and Trainer's controllers,
the kubelet's variables, volumes and signals, and DNS in /etc/hosts. Pods are processes in
namespaces (pod_root.py), each with a network of its own. A pod that restarts has another name and
address.
"""
import contextlib
import json
import os
import pathlib
import subprocess
import time

from harness import BIN, DEADLINE_S, NOT_YET, Run  # noqa: E402
from hosts import Hosts
from kube_pod import Pod
from mpi_operator import MpiJob


class Job:
    """The Job controller: keeps a pod for every index until it ends with 0, by the policies of the
    Job."""

    def __init__(self, cluster, name, spec, subdomain, labels, variables=lambda index: {}):
        self.cluster, self.name, self.spec, self.subdomain = cluster, name, spec, subdomain
        self.labels = {**labels, "batch.kubernetes.io/controller-uid": cluster.new_id(),
                       "batch.kubernetes.io/job-name": name}
        self.variables = variables
        self.failures = 0
        self.made = 0
        self.completed = set()
        self.codes = []  # of all pods that ended
        self.failed = None
        self.is_deleted = False
        self.pods = {index: self._make(index) for index in range(spec["completions"])}

    def _make(self, index):
        self.made += 1
        hostname = f"{self.name}-{index}"
        labels = {**self.labels, "batch.kubernetes.io/job-completion-index": str(index)}
        return Pod(self.cluster, f"{hostname}-{self.cluster.new_id()[-5:]}", hostname,
                   f"{hostname}.{self.subdomain}", self.spec["template"], labels,
                   {"JOB_COMPLETION_INDEX": str(index), **self.variables(index)})

    def _verdict(self, pod, code):
        for rule in self.spec["podFailurePolicy"]["rules"]:
            on_codes = rule.get("onExitCodes")
            if on_codes is not None and on_codes["operator"] == "In" and code in on_codes["values"] \
                    and on_codes["containerName"] == pod.container["name"]:
                return rule["action"]
            if any(condition["type"] == "DisruptionTarget" and pod.is_evicted
                   for condition in rule.get("onPodConditions", [])):
                return rule["action"]
        return "Count"

    def tick(self):
        for index, pod in list(self.pods.items()):
            if pod.process.poll() is None:
                continue
            code = pod.process.returncode
            code = 128 - code if code < 0 else code
            self.codes.append(code)
            pod.close()
            del self.pods[index]
            if code == 0:
                self.completed.add(index)
            elif self._verdict(pod, code) == "FailJob":
                self.failed = code
            else:
                self.failures += self._verdict(pod, code) == "Count"
                if not self.is_deleted:
                    self.pods[index] = self._make(index)
        if self.failures > self.spec["backoffLimit"]:
            self.failed = "BackoffLimitExceeded"

    def is_complete(self):
        return len(self.completed) == self.spec["completions"]


class Kubernetes:
    """Lives until close(). `claims`: a directory here by claim. `variables`: more variables for the
    programs of every pod than the manifest names. `image`: more content of the image than Lockstep,
    as (source here, path)."""

    def __init__(self, scratch, addresses, claims, variables=None, image=()):
        self.scratch, self.claims = pathlib.Path(scratch), claims
        self.image = [(source, path, True) for source, path in image]
        self.variables = [f"{name}={value}" for name, value in (variables or {}).items()]
        (self.scratch / "pods").mkdir(parents=True)
        self.etc_hosts = self.scratch / "hosts"
        self.etc_hosts.write_text("127.0.0.1 localhost\n")
        self.names, self.ids, self.jobs, self.config_maps = {}, 0, {}, {}
        self.hosts = Hosts(addresses)
        self.free = list(range(addresses))
        self.status_server = None  # set: Trainer's feature gate TrainJobStatus is on

    # Hosts, names and volumes of pods.

    def new_id(self):
        self.ids += 1
        return f"00000000-0000-4000-8000-{self.ids:012d}"

    def take_host(self):
        return self.free.pop(0)

    def free_host(self, host):
        self.free.append(host)  # the one that was free for longest is taken next

    def name_address(self, dns, address):
        """Writes in place, because this file is /etc/hosts of every pod."""
        self.names[dns] = address
        lines = ["127.0.0.1 localhost", *(f"{a} {name}" for name, a in self.names.items())]
        self.etc_hosts.write_text("\n".join(lines) + "\n")

    def volume(self, volume, pod_directory):
        if "configMap" in volume:
            return self.config_maps[volume["configMap"]["name"]]
        if "persistentVolumeClaim" in volume:
            return self.claims[volume["persistentVolumeClaim"]["claimName"]]
        if "host" in volume:  # of a controller
            return volume["host"]
        if "projected" in volume:
            return self.status_server.projected
        assert "emptyDir" in volume, volume
        directory = pod_directory / "volumes" / volume["name"]
        directory.mkdir(parents=True)
        os.chmod(directory, 0o777)
        return directory

    # Controllers of applied manifests.

    def apply(self, manifests):
        by_kind = {manifest["kind"]: manifest for manifest in manifests}
        for manifest in manifests:
            if manifest["kind"] == "ConfigMap":
                directory = self.scratch / "config-maps" / manifest["metadata"]["name"]
                directory.mkdir(parents=True, exist_ok=True)
                for name, text in manifest["data"].items():
                    (directory / name).write_text(text)
                self.config_maps[manifest["metadata"]["name"]] = directory
        if "Job" in by_kind:
            self._job(by_kind["Job"])
        elif "JobSet" in by_kind:
            self._job_set(by_kind["JobSet"])
        elif "MPIJob" in by_kind:
            name = by_kind["MPIJob"]["metadata"]["name"]
            self.jobs[name] = MpiJob(self, by_kind["MPIJob"])
        elif "TrainJob" in by_kind:
            self._train_job(by_kind["TrainJob"], by_kind["ClusterTrainingRuntime"])

    def _job(self, job):
        name, spec = job["metadata"]["name"], job["spec"]
        self.jobs[name] = Job(self, name, spec, spec["template"]["spec"]["subdomain"], {})

    def _job_set(self, job_set, variables=lambda index: {}):
        name, uid = job_set["metadata"]["name"], self.new_id()
        for replicated in job_set["spec"]["replicatedJobs"]:
            labels = {"jobset.sigs.k8s.io/jobset-name": name, "jobset.sigs.k8s.io/jobset-uid": uid,
                      "jobset.sigs.k8s.io/restart-attempt": "0",
                      "jobset.sigs.k8s.io/replicatedjob-name": replicated["name"]}
            self.jobs[replicated["name"]] = Job(self, f"{name}-{replicated['name']}-0",
                                                replicated["template"]["spec"], name, labels,
                                                variables)

    def _train_job(self, train_job, runtime):
        """Trainer with its plugin for Torch: makes a JobSet of the runtime's template."""
        assert train_job["spec"]["runtimeRef"]["name"] == runtime["metadata"]["name"]
        name, trainer = train_job["metadata"]["name"], train_job["spec"]["trainer"]
        template = runtime["spec"]["template"]["spec"]
        job = template["replicatedJobs"][0]["template"]["spec"]
        job["completions"] = job["parallelism"] = trainer["numNodes"]
        pod = job["template"]["spec"]
        container = next(c for c in pod["containers"] if c["name"] == "node")
        container.update(image=trainer["image"], args=trainer["args"],
                         resources=trainer["resourcesPerNode"])
        for patch in train_job["spec"]["runtimePatches"]:
            patched = patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"][0]
            added = patched["template"]["spec"]["template"]["spec"]
            pod["volumes"] = pod.get("volumes", []) + added["volumes"]
            container["volumeMounts"] = (container.get("volumeMounts", [])
                                         + added["containers"][0]["volumeMounts"])
        reports = self._status_variables(pod, container) if self.status_server else {}
        self._job_set({"metadata": {"name": name}, "spec": template}, lambda index: {
            **reports, "PET_NNODES": str(trainer["numNodes"]), "PET_NODE_RANK": str(index),
            "PET_NPROC_PER_NODE": str(trainer["numProcPerNode"]),
            "PET_MASTER_ADDR": f"{name}-node-0-0.{name}", "PET_MASTER_PORT": "29400"})

    def _status_variables(self, pod, container):
        """Trainer's plugin TrainJobStatus: a token, an authority and the server's URL in
        all pods."""
        mount, name = "/var/run/secrets/kubeflow/trainer", "kubeflow-trainer-token"
        pod["volumes"] = [*pod["volumes"], {"name": name, "projected": {}}]
        container["volumeMounts"] = [*container["volumeMounts"],
                                     {"name": name, "mountPath": mount, "readOnly": True}]
        return {"KUBEFLOW_TRAINER_SERVER_URL": self.status_server.url,
                "KUBEFLOW_TRAINER_SERVER_CA_CERT": f"{mount}/ca.crt",
                "KUBEFLOW_TRAINER_SERVER_TOKEN": f"{mount}/token"}

    # Events while pods run.

    def pods(self):
        return [pod for job in self.jobs.values() for pod in job.pods.values()]

    def wait_for(self, condition, what):
        """Reconciles until the condition holds. A failed Job fails the test."""
        deadline = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline:
            for job in self.jobs.values():
                job.tick()
                assert job.failed is None, f"{job.name} failed ({job.failed}) before {what}\n" \
                    + self.text()
            with contextlib.suppress(*NOT_YET):
                value = condition()
                if value:
                    return value
            assert not all(job.is_complete() for job in self.jobs.values()), \
                f"the run was over before {what}\n" + self.text()
            time.sleep(0.02)
        raise AssertionError(f"waited {DEADLINE_S} s for {what}\n" + self.text())

    def wait_complete(self):
        self.wait_for(lambda: all(job.is_complete() for job in self.jobs.values()),
                      "all Jobs were complete")

    def delete_all(self):
        """Removes the run as a queue or a person does: signals all pods at once, and starts none
        again."""
        for job in self.jobs.values():
            job.is_deleted = True
        for pod in self.pods():
            pod.terminate()
        self.wait_for(lambda: not self.pods(), "all pods ended")

    def text(self):
        return "\n".join(f"--- {path.name}\n{path.read_text(errors='replace')[-1500:]}"
                         for path in sorted(self.scratch.glob("*.out")))

    def close(self):
        for pod in self.pods():
            pod.close()
        self.hosts.close()


class PodsRun(Run):
    """A run whose pods are in `cluster`. Its run directory is a folder of the claim."""

    def __init__(self, cluster, run_dir):
        self.cluster, self.run_dir = cluster, run_dir

    def wait_for(self, condition, what):
        return self.cluster.wait_for(condition, what)

    def ask(self):
        """Asks in the coordinator's pod, because its HTTP stays on that pod's loopback."""
        pod = next(iter(self.cluster.jobs.values())).pods[0]
        out = subprocess.run([*self.cluster.hosts.on(pod.host), BIN / "lockstep", "status",
                              "--run-dir", self.run_dir, "--json"], capture_output=True,
                             timeout=DEADLINE_S)
        return json.loads(out.stdout) if out.stdout.strip() else {}
