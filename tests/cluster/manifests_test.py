"""Every manifest that Lockstep writes or ships: valid for the API server, closed, and without
secrets."""
import itertools
import pathlib
import tempfile
import unittest

from harness import DEADLINE_S, lockstep

try:
    import yaml
    from manifest_schemas import faults
except ImportError as error:
    yaml, LACK = None, f"{error} (Debian: python3-yaml, python3-jsonschema)"
else:
    LACK = ""

KINDS = ("jobset", "trainjob", "mpijob", "job")
OPTIONS = {"plain": [], "gpus": ["--gpus", "4", "--workers", "8"],
           "kueue": ["--queue", "team-a", "--namespace", "research"],
           "volcano": ["--scheduler", "volcano", "--queue", "gpu"]}
JOB = """job: My-shoes_2
seed: 11
model: {name: cnn, dropout: 0.1}   # "quoted", and: colons
data:
  train: {path: /data}
train: {global_batch: 64, slots: 8, epochs: 1}
optimizer: {name: adamw, lr: 0.002}
"""


SCRIPT = "# /// lockstep\n# train: {global_batch: 64, slots: 8, epochs: 1}\n# ///\n"


def render(*words, job=JOB, expect=0, file="job.yaml", stderr=False):
    """stdout; with another expected code, or where it is asked for, stderr."""
    with tempfile.TemporaryDirectory() as scratch:
        path = pathlib.Path(scratch) / file
        path.write_text(job)
        for option, value in (("--image", "registry.example/lockstep:0.3"),
                              ("--run-claim", "runs")):
            words = words if option in words else (option, value, *words)
        out = lockstep("k8s", "render", path, *words, timeout=DEADLINE_S)
    assert out.returncode == expect, f"{words}: {out.returncode}\n{out.stdout}{out.stderr}"
    return out.stderr if expect != 0 or stderr else out.stdout


def rendered():
    for kind, (name, options) in itertools.product(KINDS, OPTIONS.items()):
        yield f"{kind}, {name}", list(yaml.safe_load_all(render("--kind", kind, *options)))


def pod_specs(tree):
    """All {containers: [...]} in a manifest that are more than a patch."""
    if isinstance(tree, dict):
        if "containers" in tree and "securityContext" in tree:
            yield tree
        tree = list(tree.values())
    if isinstance(tree, list):
        for item in tree:
            yield from pod_specs(item)


def job_specs(tree):
    if isinstance(tree, dict):
        if "podFailurePolicy" in tree:
            yield tree
        tree = list(tree.values())
    if isinstance(tree, list):
        for item in tree:
            yield from job_specs(item)


@unittest.skipIf(LACK, LACK)
class Rendered(unittest.TestCase):
    def test_a_script_has_its_python_in_every_kind(self):
        for kind in KINDS:
            manifests = list(yaml.safe_load_all(
                render("--kind", kind, "--python", "/opt/python", job=SCRIPT, file="train.py")))
            with self.subTest(kind):
                self.assertEqual([faults(manifest) for manifest in manifests],
                                 [[]] * len(manifests))
                self.assertIn("{'name': 'LOCKSTEP_PYTHON', 'value': '/opt/python'}", str(manifests))
                self.assertEqual("'-x', 'LOCKSTEP_PYTHON'" in str(manifests), kind == "mpijob",
                                 "sshd passes nothing on")
        self.assertIn("--python", render("--python", "/opt/python", expect=64))

    def test_all_are_valid(self):
        for name, manifests in rendered():
            for manifest in manifests:
                with self.subTest(name, kind=manifest["kind"]):
                    self.assertEqual(faults(manifest), [])

    def test_a_field_that_does_not_exist_or_has_the_wrong_type_is_found(self):
        manifest = list(yaml.safe_load_all(render("--kind", "jobset")))[-1]
        pod = manifest["spec"]["replicatedJobs"][1]["template"]["spec"]["template"]["spec"]
        pod["containers"][0]["readOnlyRootFileSystem"] = True
        pod["containers"][0]["env"][1]["value"] = 3
        found = faults(manifest)
        self.assertEqual(len(found), 2, found)
        self.assertIn("readOnlyRootFileSystem", "".join(found))

    def test_pods_are_closed(self):
        for name, manifests in rendered():
            pods = [pod for manifest in manifests for pod in pod_specs(manifest)]
            self.assertTrue(pods, name)
            for pod in pods:
                with self.subTest(name):
                    self.assertIs(pod["automountServiceAccountToken"], False)
                    self.assertIs(pod["securityContext"]["runAsNonRoot"], True)
                    self.assertEqual(pod["securityContext"]["seccompProfile"],
                                     {"type": "RuntimeDefault"})
                    self.assertEqual(pod["terminationGracePeriodSeconds"], 90)
                    for container in pod["containers"]:
                        self.assertEqual(container["securityContext"], {
                            "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                            "capabilities": {"drop": ["ALL"]}})
                        self.assertNotIn("livenessProbe", container)

    def test_the_runtime_that_runs_share_holds_nothing_of_one_of_them(self):
        def runtime(*words, job=JOB):
            manifests = yaml.safe_load_all(render("--kind", "trainjob", *words, job=job))
            by_kind = {manifest["kind"]: manifest for manifest in manifests}
            found = by_kind["ClusterTrainingRuntime"]
            self.assertEqual(by_kind["TrainJob"]["spec"]["runtimeRef"]["name"],
                             found["metadata"]["name"])
            return found
        usual = runtime()
        for words in (["--image", "registry.example/other:7"], ["--name", "other"],
                      ["--workers", "6"], ["--gpus", "2"], ["--queue", "team-a"]):
            self.assertEqual(runtime(*words), usual, words)
        names = {usual["metadata"]["name"], runtime("--scheduler", "volcano")["metadata"]["name"],
                 runtime("cluster.grace_s=120")["metadata"]["name"]}
        self.assertEqual(len(names), 3, "what differs has another name")

    def test_ends_of_pods_mean_what_the_exit_codes_say(self):
        for name, manifests in rendered():
            for job in [job for manifest in manifests for job in job_specs(manifest)]:
                rules = job["podFailurePolicy"]["rules"]
                with self.subTest(name):
                    self.assertEqual([rule["action"] for rule in rules],
                                     ["Ignore", "Ignore", "FailJob"])
                    self.assertEqual(rules[0]["onPodConditions"],
                                     [{"type": "DisruptionTarget", "status": "True"}])
                    self.assertEqual(rules[1]["onExitCodes"]["values"], [75])
                    self.assertEqual(rules[2]["onExitCodes"]["values"], [64, 65, 66, 78])
                    names = {c["name"] for c in job["template"]["spec"]["containers"]}
                    self.assertEqual({r["onExitCodes"]["containerName"] for r in rules[1:]}, names)
                    self.assertGreaterEqual(job["backoffLimit"], 100)
                    self.assertEqual(job["template"]["spec"]["restartPolicy"], "Never")

    def test_the_job_file_arrives_as_it_is(self):
        odd = JOB + '# ü "quotes" \\ back\tslash   \n\n'
        for text in (JOB, odd, "  " + odd, odd.rstrip("\n")):
            text = text.replace("  job", "job")
            config = next(yaml.safe_load_all(render(job=text)))
            self.assertEqual(config["data"]["job.yaml"], text)

    def test_queues_and_schedulers(self):
        for kind in KINDS:
            kueue = list(yaml.safe_load_all(render("--kind", kind, "--queue", "team-a")))
            self.assertEqual(kueue[-1]["metadata"]["labels"]["kueue.x-k8s.io/queue-name"], "team-a")
            volcano = list(yaml.safe_load_all(render("--kind", kind, *OPTIONS["volcano"])))
            for pod in [pod for manifest in volcano for pod in pod_specs(manifest)]:
                self.assertEqual(pod["schedulerName"], "volcano")
            self.assertNotIn("kueue", str(volcano))

    def test_what_no_pod_would_take_is_refused(self):
        for words, needle in ((["train.global_batsh=3"], "train.global_batch"),
                              (["data.train.path=images"], "/data/images"),
                              (["cluster.workers=3"], "--workers"),
                              (["--gpus", "4", "--workers", "6"], "--gpus"),
                              (["--name", "Shoes"], "--name"), (["--image", "a b"], "--image"),
                              (["--memory", "lots"], "--memory"),
                              (["--run-claim", "a/b"], "--run-claim"),
                              (["comm.network=loopback", "comm.advertise=x"], "comm.advertise")):
            with self.subTest(words):
                self.assertIn(needle, render(*words, expect=64))

    def test_what_will_hardly_be_in_a_pod_is_told(self):
        told = render("data.train.path=/mnt/shoes", "comm.network=loopback", "--data-claim", "shoes",
                      stderr=True)
        self.assertIn("data.train.path is /mnt/shoes", told)
        self.assertIn("comm.network is loopback", told)
        self.assertIn("--data-claim", render(stderr=True), "/data, and no claim for it")
        self.assertEqual(render("--data-claim", "shoes", stderr=True), "")

    def test_pods_with_gpus_have_memory_and_shared_memory_to_match(self):
        for kind in KINDS:
            *_, manifest = yaml.safe_load_all(render("--kind", kind, *OPTIONS["gpus"]))
            text = str(manifest)
            self.assertIn("'memory': '64Gi'", text, kind)
            self.assertIn("{'medium': 'Memory', 'sizeLimit': '4Gi'}", text, kind)
            self.assertIn("'mountPath': '/dev/shm'", text, kind)
        plain = render()
        self.assertIn("4Gi", plain)
        self.assertNotIn("/dev/shm", plain)
        self.assertIn("99Gi", render(*OPTIONS["gpus"], "--memory", "99Gi"))

    def test_data_at_a_url_need_no_path_in_the_pod(self):
        for url in ("s3://bucket/shoes", "https://data.example/shoes"):
            self.assertIn(url, render(f"data.train.path={url}", "data.cache_dir=/cache"))

    def test_gradients_over_mpi_are_for_mpijobs_which_lets_a_worker_die(self):
        over_mpi = ["comm.backend=mpi", "comm.trusted_network=true"]
        self.assertIn("orte_allowed_exit_without_sync", render("--kind", "mpijob", *over_mpi))
        self.assertNotIn("orte_allowed_exit_without_sync", render("--kind", "mpijob"))
        self.assertIn("--kind mpijob", render(*over_mpi, expect=78))


if __name__ == "__main__":
    unittest.main()
