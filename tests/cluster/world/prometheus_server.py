"""A real Prometheus that scrapes one run with the committed configurations."""
import contextlib
import json
import pathlib
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

from harness import DEADLINE_S
from ports import held_port

DEPLOY = pathlib.Path(__file__).resolve().parents[3] / "deploy"
# Time passes so much faster than in the committed rules: "[2m]" is four seconds.
FASTER = 30
SCRAPE = "500ms"
UNITS_S = {"s": 1, "m": 60, "h": 3600}


def faster(text):
    """Shortens ranges and `for` of rules."""
    def short(match):
        seconds = int(match[2]) * UNITS_S[match[3]] / FASTER
        return f"{match[1]}{round(seconds * 1000)}ms{match[4]}"
    text = re.sub(r"(\[| offset )(\d+)([smh])(\]|$)", short, text, flags=re.M)
    return re.sub(r"(^ +for: )(\d+)([smh])($)", short, text, flags=re.M)


def configuration(directory, coordinator_http, tls=None):
    """Writes the committed files for this run, at this test's pace. `tls`: the authority's
    certificate and the token."""
    for name in ("rules.yml", "alerts.yml"):
        (directory / name).write_text(faster((DEPLOY / "prometheus" / name).read_text()))
    name, url = "prometheus.yml", "http://127.0.0.1:9400/sd"
    if tls:
        name, url = "prometheus-tls.yml", "https://10.2.0.1:9400/sd"
        for source, copy in zip(tls, ("ca.crt", "http_token")):
            shutil.copy(source, directory / copy)
    text = (DEPLOY / "prometheus" / name).read_text()
    wanted_url = url.replace(urllib.parse.urlparse(url).netloc, coordinator_http)
    for committed, wanted in ((url, wanted_url),
                              ("_interval: 15s", f"_interval: {SCRAPE}")):
        assert committed in text, committed
        text = text.replace(committed, wanted)
    path = directory / "prometheus.yml"
    path.write_text(text)
    return path


class Prometheus:
    """`prefix`: a command that starts its commands on another host."""

    def __init__(self, directory, coordinator_http, prefix=(), tls=None):
        directory.mkdir()
        self.prefix = prefix
        self.log = directory / "log"
        self.held = contextlib.ExitStack()  # the port, until stop()
        self.url = f"http://127.0.0.1:{held_port(self.held.callback)}"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [*prefix, "prometheus",
                 f"--config.file={configuration(directory, coordinator_http, tls)}",
                 f"--storage.tsdb.path={directory / 'data'}",
                 f"--web.listen-address={self.url.removeprefix('http://')}"],
                stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.held.close()

    def get(self, path, **parameters):
        query = urllib.parse.urlencode(parameters)
        if self.prefix:
            return self.get_there(f"{self.url}/api/v1/{path}?{query}")
        try:
            with urllib.request.urlopen(f"{self.url}/api/v1/{path}?{query}", timeout=DEADLINE_S) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            if error.code == 503:  # it is not ready yet
                raise
            raise AssertionError(f"{parameters}: {error.read().decode()}") from error

    def get_there(self, url):
        program = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1]).read().decode())"
        done = subprocess.run([*self.prefix, sys.executable, "-c", program, url],
                              capture_output=True, text=True, timeout=DEADLINE_S)
        if done.returncode != 0:  # it does not answer yet
            raise OSError(done.stderr)
        return json.loads(done.stdout)["data"]

    def query(self, expr):
        """[(labels, value)] at present."""
        return [(each["metric"], float(each["value"][1]))
                for each in self.get("query", query=expr)["result"]]

    def firing(self):
        """The names of firing alerts."""
        return {alert["labels"]["alertname"] for alert in self.get("alerts")["alerts"]
                if alert["state"] == "firing"}

    def wait_for(self, condition, what, deadline_s=DEADLINE_S):
        """Polls until `condition` returns something. If it never does, shows its last value."""
        deadline = time.monotonic() + deadline_s
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):  # no answer yet
                if value := condition():
                    return value
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        raise AssertionError(f"waited in vain for {what}; Prometheus says:\n"
                             + self.log.read_text()[-2000:])
