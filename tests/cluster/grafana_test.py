"""The committed dashboards are what deploy/grafana/dashboards.py writes."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

from harness import DEADLINE_S

GRAFANA = pathlib.Path(__file__).resolve().parents[2] / "deploy" / "grafana"


def wanted_sdk():
    lines = (GRAFANA / "requirements.txt").read_text().splitlines()
    return next(line.split("==")[1] for line in lines if line.startswith("grafana-"))


def found_sdk():
    from importlib import metadata
    try:
        return metadata.version("grafana-foundation-sdk")
    except metadata.PackageNotFoundError:
        return "none"


@unittest.skipUnless(found_sdk() == wanted_sdk(), f"SKIPPED: it takes grafana-foundation-sdk "
                     f"{wanted_sdk()}, and here is {found_sdk()}: the dashboards were not made "
                     "again (pip install -r deploy/grafana/requirements.txt)")
class Dashboards(unittest.TestCase):
    def test_made_again_they_are_the_committed_ones(self):
        with tempfile.TemporaryDirectory() as directory:
            subprocess.run([sys.executable, "-B", GRAFANA / "dashboards.py", directory],
                           check=True, timeout=DEADLINE_S)
            made = {path.name: path.read_text() for path in pathlib.Path(directory).iterdir()}
        committed = {path.name: path.read_text() for path in GRAFANA.glob("*.json")}
        self.assertEqual(sorted(made), sorted(committed))
        for name, text in made.items():
            self.assertEqual(text, committed[name], f"{name}: run deploy/grafana/dashboards.py")


if __name__ == "__main__":
    unittest.main()
