"""Several hosts on a network with certificates (comm.tls): control over mutual TLS, HTTP beyond
loopback, and every caller that should not be let in."""
import json
import pathlib
import shutil
import signal
import subprocess
import sys
import unittest

from fails_with import events
from harness import DEADLINE_S, lockstep
from hosts import NETWORK, Hosts, why_not
from nodes import NodesTest
from prometheus_server import Prometheus

WORKERS = 2  # of each host
CROWD = 10_000
HERE = pathlib.Path(__file__).resolve().parent / "world"


def openssl(*words):
    subprocess.run(["openssl", *words], check=True, capture_output=True, text=True, timeout=DEADLINE_S)


def make_expired(ours, directory):
    """Makes a certificate of our authority that expired yesterday."""
    directory.mkdir()
    key, request = directory / "tls.key", directory / "request"
    openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-keyout", key, "-out", request, "-subj", "/CN=expired")
    openssl("x509", "-req", "-in", request, "-CA", ours / "ca.crt", "-CAkey", ours / "ca.key",
            "-CAcreateserial", "-days", "-1", "-out", directory / "tls.crt")


@unittest.skipUnless(shutil.which("openssl"), "there is no openssl here")
@unittest.skipIf(reason := why_not(), reason)
class Tls(NodesTest):
    slot_ms = 20  # strangers are waited for, some for ten seconds

    def setUp(self):
        super().setUp()
        self.hosts = Hosts(3)
        self.addCleanup(self.hosts.close)
        self.certificates = self.scratch / "certificates"
        self.certificates.mkdir()
        self.tls = self.certificates / "ours"
        self.certify(self.tls, self.hosts.address(0), self.hosts.address(1))

    def certify(self, directory, *hosts):
        self.succeed("certs", directory, "--hosts", ",".join(hosts))

    def start_hosts(self):
        self.job_of()  # the undisturbed run knows nothing of hosts and certificates
        places = {f"host-{i}": self.hosts.on(i) for i in range(2)}
        return self.start_nodes(places, WORKERS, metrics={"listen": "network:0"},
                                comm={"network": NETWORK, "tls": str(self.tls)})

    def refusals(self, run):
        """Reasons for which the third host was refused."""
        return [line["reason"] for line in events(run, "stranger_refused")
                if line["peer"].startswith(self.hosts.address(2) + ":")]

    def stranger(self, *words):
        done = subprocess.run([*self.hosts.on(2), sys.executable, HERE / "tls_stranger.py", *words],
                              capture_output=True, text=True, timeout=DEADLINE_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def assert_refused(self, run, *reasons):
        for reason in reasons:
            run.wait_for(lambda: any(reason in each for each in self.refusals(run)),
                         f"somebody was refused: {reason}")

    def test_hosts_train_together_and_every_stranger_is_refused(self):
        self.slot_ms = 40
        run, _ = self.start_hosts()
        generation = run.status()["generation"]
        self.assertEqual(self.assert_event(run, "network", names="TLS 1.3")["level"], "info")
        self.control_is_for_those_with_a_certificate(run)
        self.http_is_for_those_with_the_token(run)
        self.another_runs_token_does_not_help(run)
        run.wait_for_more_steps(50)
        self.assertEqual(run.status()["generation"], generation, "nobody was disturbed")
        self.assert_as_if_nothing_had_happened(run)

    def control_is_for_those_with_a_certificate(self, run):
        self.certify(self.certificates / "other", self.hosts.address(2))
        make_expired(self.tls, self.certificates / "expired")
        met = self.stranger("control", run.coordinator()["control"], self.certificates)
        self.assertNotIn("LOCKSTP", met["clear"])
        self.assertIn("CERTIFICATE", met["bare"].upper() + met["other"].upper())
        self.assertTrue(met["hung_up"], "one that begins TLS and never ends is not borne for ever")
        self.assert_refused(
            run, "wrong version number", "no certificate", "unsupported protocol", "expired",
            "local issuer certificate", "stream", "prove")

    def http_is_for_those_with_the_token(self, run):
        http = run.coordinator()["http"]
        self.assertTrue(http.startswith(self.hosts.address(0) + ":"))
        shutil.copy(run.run_dir / "http_token", self.certificates)
        met = self.stranger("http", http, self.certificates)
        self.assertTrue(met.pop("hung_up"))
        self.assertEqual({what: answer.split(" ")[1:2] for what, answer in met.items()}, {
            "token": ["200"], "no_token": ["401"], "wrong_token": ["401"], "healthz": ["200"],
            "certified_name": ["200"], "rebound": ["421"], "header": ["431"], "clear": []}, met)
        self.assert_refused(run, "Host", "header", "http_token", "TLS failed")

    # The certificate lets it in, the token does not.
    def another_runs_token_does_not_help(self, run):
        other = self.scratch / "other-run"
        other.mkdir()
        for name in ("job.pb", "coordinator.json"):
            shutil.copy(run.run_dir / name, other)
        token = other / "token"
        token.touch(mode=0o600)
        token.write_text("0" * 64 + "\n")
        scaled = lockstep("scale", other, "1", prefix=self.hosts.on(2))
        self.assert_fails(scaled, 3, says="token")
        self.assert_refused(run, "token is wrong")

    def test_a_crowd_that_says_nothing_holds_nobody_up(self):
        run, _ = self.start_hosts()
        generation = run.status()["generation"]
        with subprocess.Popen(
                [*self.hosts.on(2), sys.executable, HERE / "tls_stranger.py", "crowd",
                 run.coordinator()["control"], str(CROWD)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as crowd:
            came = int(crowd.stdout.readline() or 0)
            self.assertGreaterEqual(came, 1000)
            if came < CROWD:
                print(f"only {came} of {CROWD}: the limit of open files", file=sys.stderr)
            run.wait_for_more_steps(50)
            scaled = lockstep("scale", run.run_dir, 2 * WORKERS, prefix=self.hosts.on(0))
            self.assertEqual(scaled.returncode, 0, scaled.stderr)
            # If the crowd exceeds the server's room, the server drops its first callers at once.
            run.wait_for(lambda: any("begin TLS" in each or "room" in each
                                     for each in self.refusals(run)),
                         "somebody was refused who said nothing")
            crowd.stdin.close()
        self.assertEqual(run.status()["generation"], generation, "nobody was disturbed")
        self.assert_as_if_nothing_had_happened(run)

    def test_whoever_answers_for_another_host_is_not_believed(self):
        wrong = self.certificates / "wrong"
        self.certify(wrong, self.hosts.address(2))
        run = self.start(self.job_of(), "--workers", 1, f"comm.network={NETWORK}",
                         f"comm.tls={wrong}", prefix=self.hosts.on(0))
        self.assert_fails(run, 78, names=[wrong / "tls.crt", self.hosts.address(0)],
                          advises="lockstep certs")

    def test_certificates_and_token_are_replaced_while_it_trains(self):
        run, (first, second) = self.start_hosts()
        generation = run.status()["generation"]
        self.certify(self.tls, "another-name")
        token = run.run_dir / "token"
        fresh = run.run_dir / "token.new"
        fresh.touch(mode=0o600)
        fresh.write_text("5" * 64 + "\n")
        fresh.rename(token)
        scaled = lockstep("scale", run.run_dir, 2 * WORKERS, prefix=self.hosts.on(1))
        self.assertEqual(scaled.returncode, 0, scaled.stderr)
        # A status request connects, and the coordinator looks at the files at each connection.
        run.wait_for(lambda: run.status() and events(run, "tls_read_again"),
                     "the certificate was read again")
        self.assertTrue(events(run, "token_read_again"))
        self.assertEqual(run.status()["generation"], generation, "nobody was disturbed")
        # One that starts afterwards knows the new token alone, its peers began with the old one.
        victim = second.pids()[0]
        subprocess.run(["kill", "-9", str(victim)], check=True)
        run.wait_for(lambda: victim not in run.workers(), "the dead one was evicted")
        run.wait_for_workers(2 * WORKERS)
        self.assert_as_if_nothing_had_happened(run)
        self.assertEqual([node.agent.wait(DEADLINE_S) for node in (first, second)], [0, 0])

    @unittest.skipUnless(shutil.which("prometheus"), "there is no prometheus (package prometheus)")
    def test_one_prometheus_sees_both_hosts(self):
        run, _ = self.start_hosts()
        prometheus = Prometheus(self.scratch / "prometheus", run.coordinator()["http"],
                                prefix=self.hosts.on(2), tls=(self.tls / "ca.crt",
                                                              run.run_dir / "http_token"))
        self.addCleanup(prometheus.stop)
        prometheus.wait_for(lambda: len(prometheus.query("up == 1")) == 3 + 2 * WORKERS,
                            "the coordinator, two agents and their workers to be scraped")
        hosts = {labels["node"] for labels, _ in prometheus.query('up{node!=""}')}
        self.assertEqual(hosts, {"host-0", "host-1"})
        left = [value for _, value in prometheus.query("lockstep_tls_expiry_seconds")]
        self.assertEqual(len(left), 3 + 2 * WORKERS)
        self.assertTrue(all(300 * 86400 < value < 366 * 86400 for value in left), left)
        run.process.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(), 75, run.text()[-2000:])


if __name__ == "__main__":
    unittest.main()
