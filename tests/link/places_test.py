"""How many places a change touches that adds a thing of one kind: a model, an optimizer, a loss, a
format, a metric, a command, a job key that scripts refuse. An example stands for each kind: every
file of the product that names the example is a place, or is listed as one that only mentions it. A
file that begins to name the example fails the test, so a new place does not come unseen. Text that
a tool writes into a page, between markers, is no place. `python3 places_test.py --table` prints the
table."""
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PRODUCT = ("comm", "coordinator", "data", "deploy", "metrics", "worker")
KEYS = "comm/run/job/job_train.proto"
# key_tables.py and metrics_md_test.cc write these.
WRITTEN = re.compile(r"<!-- (keys|values|metrics)\b.*?<!-- /\1 -->", re.S)
# The thing's own files are one place, however many they are: all that begin with these paths.
OWN = "own: "

# By kind: a pattern that finds the example, the places, and the files that only mention it.
KINDS = {
    "a model": (
        r'"cnn"|\bcnn\(|`cnn`|\bkCnn|\bcnn_|\bCnn|\bcnn:',
        ["comm/run/job/models/model_table.cc", "worker/torch/model/builtin.h",
         OWN + "worker/torch/model/cnn"],
        # How an export without a library of its own is computed; two examples.
        ["deploy/cli/export/input_card.cc", "deploy/DOCTOR.md", "worker/MODELS.md"]),
    "an optimizer": (
        r"adagrad|Adagrad",
        [KEYS, "worker/optim/optimizer_list.h",
         OWN + "worker/optim/rules/adagrad worker/optim/adagrad"],
        # How many moments: of another number than two.
        ["data/doctor/model_advice.cc", "worker/python/FRAMEWORKS.md",
         "worker/python/lockstep/_frameworks/_hf_arguments.py"]),
    "a loss": (
        r'\bhuber\b|kHuber',
        ["comm/run/job/loss_kind.h", "worker/torch/engine/sample_loss.cc"],
        []),
    "a data format": (
        r'\bmds\b|_mds|\bmds_|Mds',
        ["comm/run/job/data_formats.h", "data/formats/format_rows.h", OWN + "data/formats/shards/mds",
         "data/FORMATS.md"],
        # Over HTTP the index of MDS is a list of files, which other formats do not have.
        ["data/source/stores/http_store.cc", "data/source/stores/http_store.h"]),
    "a metric": (
        r"lockstep_job_tainted|set_tainted\(",
        [OWN + "metrics/probes/check_probe", "coordinator/serve/observe.cc"],
        ["deploy/grafana/cluster-and-control-plane.json", "deploy/grafana/dashboards.py",
         "deploy/prometheus/alerts.yml", "deploy/prometheus/alerts_test.yml"]),
    "a command": (
        r"add_scale_command|\bADD\(scale\)",
        ["deploy/cli/commands/commands.h", OWN + "deploy/cli/commands/scale_command"],
        []),
    "a job key that scripts refuse": (
        r"\btrain\.graph\b|train\(\)\.graph\(\)|\bgraph = \d",
        [KEYS, OWN + "comm/run/job/graph_rule worker/torch/device/slot_graphs"],
        ["data/doctor/find_limit.cc", "data/doctor/measurements.h", "deploy/DOCTOR.md",
         "worker/cuda/GPU.md"]),
}


def sources():
    """By name, the text of every file that may be a place."""
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard",
                             *PRODUCT], capture_output=True, text=True, check=True).stdout.splitlines()
    texts = {name: (ROOT / name).read_bytes().decode(errors="ignore") for name in listed
             if "/examples/" not in name and "/adr/" not in name and (ROOT / name).is_file()}
    return {name: WRITTEN.sub("", text) if name.endswith(".md") else text
            for name, text in texts.items()}


def as_places(found, places):
    """The found files, with the thing's own files as one place."""
    for own in (place for place in places if place.startswith(OWN)):
        its = {name for name in found if name.startswith(tuple(own.removeprefix(OWN).split()))}
        found = found - its | ({own} if its else set())
    return found


class Places(unittest.TestCase):
    def test_no_kind_has_more_places_than_are_listed(self):
        texts = sources()
        for kind, (pattern, places, mentions) in KINDS.items():
            found = {name for name, text in texts.items() if re.search(pattern, text)}
            with self.subTest(kind):
                self.assertEqual(sorted(as_places(found - set(mentions), places)), sorted(places))


if __name__ == "__main__":
    if "--table" in sys.argv:
        for kind, (_, places, _) in KINDS.items():
            print(f"{kind:30} {len(places)}  {'; '.join(places)}")
    else:
        unittest.main()
