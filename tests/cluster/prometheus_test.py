"""Prometheus' files and the dashboards, with a real Prometheus that scrapes a real run."""
import json
import math
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

from harness import BIN, DEADLINE_S, LockstepTest, ROOT, kill_at_once, processes_of
from prometheus_server import DEPLOY, FASTER, Prometheus

# Shows GPUs where there are none (tests/unit/metrics/fake_nvml.cc).
FAKE_NVML = BIN.parent / "tests" / "liblockstep_fake_nvml.so"
# Queries that have data only after something went wrong; each is made to, further down.
NEEDS_A_FAULT = {"Alerts"}
# Agents judge the GPUs of jobs on GPUs only (tests/unit/metrics/gpu_probe_test.cc).
NEEDS_A_JOB_ON_GPUS = {"GPUs, verdict"}


def panels():
    """(dashboard, panel) of each panel that queries."""
    for path in sorted((DEPLOY / "grafana").glob("*.json")):
        for panel in json.loads(path.read_text())["panels"]:
            if panel["type"] != "row":
                yield path.stem, panel


def texts():
    """The text of each file that uses metrics, by the file's name."""
    files = [*(DEPLOY / "prometheus").glob("*.yml"), *(DEPLOY / "grafana").glob("*.json")]
    return {path.name: path.read_text() for path in files}


@unittest.skipUnless(shutil.which("promtool"), "there is no promtool here (package prometheus)")
class Promtool(unittest.TestCase):
    def promtool(self, *words):
        done = subprocess.run(["promtool", *words], cwd=DEPLOY / "prometheus", text=True,
                              capture_output=True, timeout=DEADLINE_S)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_configurations_are_valid(self):
        self.promtool("check", "config", "prometheus.yml")
        with tempfile.TemporaryDirectory() as scratch:  # where what it names is there
            shutil.copytree(DEPLOY / "prometheus", scratch, dirs_exist_ok=True)
            for name in ("http_token", "ca.crt"):
                (pathlib.Path(scratch) / name).touch()
            self.promtool("check", "config", f"{scratch}/prometheus-tls.yml")

    def test_every_rule_says_what_its_unit_tests_expect(self):
        self.promtool("test", "rules", "alerts_test.yml")


class Files(unittest.TestCase):
    def test_every_metric_that_is_used_is_exported(self):
        documented = (ROOT / "metrics" / "METRICS.md").read_text()
        exported = set(re.findall(r"^\| `(lockstep_\w+)`", documented, re.M))
        for name, text in texts().items():
            for used in set(re.findall(r"(?<![\w:])lockstep_\w+", text)):
                family = re.sub(r"_(sum|count|bucket)$", "", used)
                groups = {"lockstep_job", "lockstep_worker", "lockstep_node", "lockstep_alerts"}
                self.assertTrue({used, family} & (exported | groups), f"{used} in {name}")

    def test_every_recorded_series_that_is_used_is_recorded(self):
        rules = texts()["rules.yml"]
        recorded = set(re.findall(r"record: (\S+)", rules))
        for name, text in texts().items():
            used = set(re.findall(r"\b(?:run|instance):lockstep_\w+(?::\w+)?", text))
            self.assertLessEqual(used, recorded, name)

    def test_every_alert_has_unit_tests_in_which_it_fires_and_does_not_and_a_page(self):
        pages = (DEPLOY / "prometheus" / "RUNBOOKS.md").read_text()
        tests = texts()["alerts_test.yml"]
        alerts = re.findall(r"alert: (\w+)", texts()["alerts.yml"])
        self.assertGreater(len(alerts), 8)
        for alert in alerts:
            self.assertIn(f"\n## {alert}\n", pages)
            self.assertIn(f"RUNBOOKS.md#{alert.lower()}", texts()["alerts.yml"])
            self.assertIn(f"alertname: {alert}, exp_alerts: []", tests, "never seen not firing")
            self.assertRegex(tests, rf"alertname: {alert}\n +exp_alerts:\n", "never seen firing")

    def test_every_panel_says_what_it_shows_and_asks_the_chosen_data_source(self):
        seen = list(panels())
        self.assertEqual(len({name for name, _ in seen}), 4)
        for name, panel in seen:
            where = f"{panel.get('title')} of {name}"
            self.assertTrue(panel["description"], where)
            if panel["type"] != "table":
                self.assertTrue(panel["fieldConfig"]["defaults"]["unit"], where)
            for asker in (panel, *panel["targets"]):
                self.assertEqual(asker["datasource"]["uid"], "${datasource}", where)

    def test_every_dashboard_has_the_same_variables_and_panels_of_different_ids(self):
        for path in (DEPLOY / "grafana").glob("*.json"):
            board = json.loads(path.read_text())
            self.assertEqual([v["name"] for v in board["templating"]["list"]],
                             ["datasource", "job", "run", "instance"], path.name)
            ids = [panel["id"] for panel in board["panels"]]
            self.assertEqual(len(set(ids)), len(ids), path.name)


@unittest.skipUnless(shutil.which("prometheus"), "there is no prometheus here (package prometheus)")
class Scraped(LockstepTest):
    slot_ms = 5

    def setUp(self):
        super().setUp()
        self.assertTrue(FAKE_NVML.exists(), f"{FAKE_NVML} is not there: build lockstep_fake_nvml")
        self.gpus = self.scratch / "gpus"
        self.show_gpus()
        job = self.job(self.small_data(), job="watched", model={"name": "mlp"},
                       train={"global_batch": 64, "slots": 4, "max_steps": 1_000_000_000},
                       checkpoint={"every_steps": 500},
                       # A stopped worker must show in the metrics before it is evicted.
                       cluster={"lease_s": 120, "max_crashes": 100})
        self.watched = self.start(job, "--workers", 2,
                                  env={**os.environ, "LOCKSTEP_NVML_LIBRARY": str(FAKE_NVML),
                                       "FAKE_NVML": str(self.gpus)})
        self.watched.wait_for_workers(2)
        http = self.watched.coordinator()["http"]
        self.prometheus = Prometheus(self.scratch / "prometheus", http)
        self.addCleanup(self.prometheus.stop)  # before the scratch directory goes

    def show_gpus(self, *more):
        """Sets what the stand-in for NVML answers, which may read the file at any moment."""
        lines = ["devices 2", "utilization 75", "memory_utilization 40", "memory 80000000000",
                 "memory_used 60000000000", "power 350000", "power_limit 700000",
                 "temperature 65", "clock 1980", "throttle 4", "ecc 0", *more]
        new = self.gpus.with_name("gpus.new")
        new.write_text("\n".join(lines))
        new.rename(self.gpus)

    def fires(self, alert):
        self.prometheus.wait_for(lambda: alert in self.prometheus.firing(), f"{alert} to fire")

    def ceases(self, alert):
        self.prometheus.wait_for(lambda: alert not in self.prometheus.firing(),
                                 f"{alert} to cease")

    def asked(self):
        """Every expression by where it stands, with what a person would choose."""
        values = {"$__rate_interval": f"{round(120 / FASTER)}s", "$job": "lockstep",
                  "$run": "watched", "$instance": ".+"}
        found = {}
        for name, panel in panels():
            if panel["title"] in NEEDS_A_JOB_ON_GPUS:
                continue
            for target in panel["targets"]:
                expr = target["expr"]
                for variable, value in values.items():
                    expr = expr.replace(variable, value)
                found[f"{name}: {panel['title']}: {target['refId']}"] = expr
        for group in self.prometheus.get("rules", type="record")["groups"]:
            for rule in group["rules"]:
                found[f"{group['name']}: {rule['name']}"] = rule["query"]
        return found

    def without_data(self, asked):
        return {where: expr for where, expr in asked.items()
                if not any(math.isfinite(value) for _, value in self.prometheus.query(expr))}

    def is_fault(self, where):
        return where.split(": ")[1] in NEEDS_A_FAULT

    def test_all_queries_have_data_and_faults_fire_their_alerts(self):
        prometheus = self.prometheus
        prometheus.wait_for(lambda: len(prometheus.query("up == 1")) == 4,
                            "the coordinator, its agent and two workers to be scraped")
        instances = {labels["instance"] for labels, _ in prometheus.query("up")}
        nodes = {name.split("/")[0] for name in instances} - {"coordinator"}
        self.assertEqual(len(nodes), 1, instances)
        node = nodes.pop()
        self.assertEqual(instances, {"coordinator", node, f"{node}/0", f"{node}/1"})

        asked = self.asked()
        self.assertGreater(len(asked), 80)
        expected = {where: expr for where, expr in asked.items() if not self.is_fault(where)}
        try:
            prometheus.wait_for(lambda: not self.without_data(expected), "data")
        except AssertionError as error:
            raise AssertionError(f"no data: {self.without_data(expected)}") from error
        for group in prometheus.get("rules")["groups"]:
            for rule in group["rules"]:
                self.assertEqual(rule["health"], "ok", rule)
        # Prometheus never scrapes the two at the same moment, which matters less and less. The
        # ratio would stay at 2 if samples were counted twice.
        ratio = "sum(lockstep_samples_total) / sum(lockstep_job_samples_total)"
        prometheus.wait_for(lambda: 0.7 < prometheus.query(ratio)[0][1] < 1.4,
                            "workers to count the samples of the run")
        for alert in ("LockstepRankLost", "LockstepTainted", "LockstepCorruption",
                      "LockstepGpuLost", "LockstepGpuErrors", "LockstepGpuThrottled",
                      "LockstepGpuSilent"):
            self.assertNotIn(alert, prometheus.firing())

        self.lose_a_gpu()
        self.kill_one(node)
        self.assertEqual(self.without_data(asked), {})
        self.stop_one(f"{node}/1")
        self.stop_the_coordinator()
        self.assertNotIn("LockstepRunGone", prometheus.firing())
        kill_at_once(processes_of(self.watched.run_dir))
        self.fires("LockstepRunGone")

    def lose_a_gpu(self):
        prometheus = self.prometheus
        watts = {labels["gpu"]: value for labels, value in
                 prometheus.query("lockstep_gpu_power_watts")}
        self.assertEqual(watts, {"0": 350, "1": 350})
        self.show_gpus("error.all.1 15", "xids.1 1", "xid.1 79")
        self.fires("LockstepGpuErrors")
        self.fires("LockstepGpuLost")
        lost = prometheus.query("lockstep_gpu_lost == 1")
        self.assertEqual([(labels["gpu"], labels["uuid"]) for labels, _ in lost], [("1", "GPU-1")])
        self.show_gpus()
        self.ceases("LockstepGpuLost")

    def kill_one(self, node):
        os.kill(self.watched.worker(1), signal.SIGKILL)
        self.fires("LockstepRankLost")
        deaths = f'lockstep_agent_worker_deaths_total{{instance="{node}"}} == 1'
        self.prometheus.wait_for(lambda: self.prometheus.query(deaths), "the death to be counted")
        self.watched.wait_for_workers(2)
        # The new process has another port, but the same instance, and continues its series.
        alive = f'up{{instance="{node}/1"}} == 1'
        self.prometheus.wait_for(lambda: len(self.prometheus.query(alive)) == 1,
                                 "the new worker to be scraped")

    def stop_one(self, instance):
        """Stops the member with the highest local rank."""
        members = self.watched.status()["members"]
        pid = max(members, key=lambda member: member["local_rank"])["pid"]
        os.kill(pid, signal.SIGSTOP)
        try:
            self.fires("LockstepTargetDown")
            down = 'ALERTS{alertname="LockstepTargetDown", alertstate="firing"}'
            self.assertIn(instance, {labels["instance"]
                                     for labels, _ in self.prometheus.query(down)})
            self.fires("LockstepStalled")
        finally:
            os.kill(pid, signal.SIGCONT)
        self.ceases("LockstepStalled")
        self.ceases("LockstepTargetDown")

    def stop_the_coordinator(self):
        pid = self.watched.coordinator()["pid"]
        os.kill(pid, signal.SIGSTOP)
        try:
            self.fires("LockstepCoordinatorDown")
        finally:
            os.kill(pid, signal.SIGCONT)
        self.ceases("LockstepCoordinatorDown")


if __name__ == "__main__":
    unittest.main()
