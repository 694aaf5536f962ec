"""Commands do not believe a server at the port of a coordinator that has ended. Also: edited
losses, and processes whose files may not grow.
"""
import http.server
import json
import resource
import sqlite3
import subprocess
import threading
import unittest

from harness import BIN, DEADLINE_S, LockstepTest, lockstep

LIE = {"run": "test", "state": "training", "step": 4711, "total_steps": 9999, "members": [],
       "workers": 1, "generation": 1, "epoch": 0, "epochs": 1, "proof": "00" * 32}


class Liar(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps(LIE).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass


class Impostor(LockstepTest):
    def job_file(self, **sections):
        return self.job(self.small_data(), model={"name": "mlp"}, **sections)

    def test_whoever_has_the_port_of_an_ended_run_is_not_believed(self):
        run = self.finish(self.job_file(), "--workers", 1)
        host, port = run.coordinator()["http"].rsplit(":", 1)
        server = http.server.ThreadingHTTPServer((host, int(port)), Liar)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            status = lockstep("status", run.run_dir, "--json")
            self.assertEqual(status.returncode, 3, status.stdout)
            for command in (["top", "--once", run.run_dir], ["report", run.run_dir]):
                told = lockstep(*command)
                self.assertEqual(told.returncode, 0, told.stderr)
                self.assertNotIn("4711", told.stdout + told.stderr)
                self.assertNotIn("4,711", told.stdout + told.stderr)
            for page in run.run_dir.glob("*.html"):
                self.assertNotIn("4711", page.read_text())
        finally:
            server.shutdown()
            thread.join()
            server.server_close()

    def test_a_loss_that_somebody_edited_does_not_pass_the_audit(self):
        run = self.finish(self.job_file(), "--workers", 1)
        self.audit(run)
        journal = sqlite3.connect(run.run_dir / "journal.db")
        journal.execute("UPDATE steps SET loss = 0.5 WHERE step = 3")
        journal.commit()
        journal.close()
        self.assert_fails(lockstep("audit", run.run_dir), 65, names=run.run_dir)

    def test_files_that_may_not_grow_are_an_error_of_every_process(self):
        job = self.job_file(train={"global_batch": 64, "slots": 4, "max_steps": 3000})
        for limit in (60_000, 150_000):
            with self.subTest(limit=limit):
                run_dir = self.scratch / f"run-{limit}"
                ended = subprocess.run(
                    [BIN / "lockstep", "run", job, "--run-dir", run_dir, "--workers", "1"], capture_output=True, text=True,
                    env=self.environment(), timeout=DEADLINE_S,
                    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
                text = ended.stdout + ended.stderr
                self.assertIn(ended.returncode, (70, 78), text[-3000:])
                self.assertNotIn("SIGXFSZ", text)
                self.assertIn("large", text, "it names the cause")


if __name__ == "__main__":
    unittest.main()
