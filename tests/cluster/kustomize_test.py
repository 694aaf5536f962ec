"""deploy/kubernetes: what is written there is what `lockstep k8s render` gives, so that nothing is
said twice in two ways; and it is valid."""
import unittest

from harness import DEADLINE_S, ROOT, lockstep

try:
    from kustomize import build
    from manifest_schemas import faults
    import yaml
except ImportError as error:
    LACK = f"{error} (Debian: python3-yaml, python3-jsonschema)"
else:
    LACK = ""

KUBERNETES = ROOT / "deploy/kubernetes"
KINDS = ("jobset", "trainjob", "mpijob", "job")
COMMAND = ["--workers", "4", "--run-claim", "runs", "--data-claim", "data", "--image",
           "lockstep:latest"]


def render(kind, *words):
    out = lockstep("k8s", "render", KUBERNETES / "job.yaml", "--kind", kind, *COMMAND, *words,
                   timeout=DEADLINE_S)
    assert out.returncode == 0, out.stderr
    return out.stdout


def by_name(manifests):
    return {(m["kind"], m["metadata"]["name"]): m for m in manifests}


@unittest.skipIf(LACK, LACK)
class Kustomize(unittest.TestCase):
    maxDiff = None

    def test_bases_are_what_render_writes(self):
        for kind in KINDS:
            self.assertEqual((KUBERNETES / "base" / kind / "run.yaml").read_text(), render(kind),
                             f"{kind}: run deploy/kubernetes/generate.sh")

    def test_overlays_make_what_render_writes_with_their_options(self):
        for overlay, words in (("kueue", ["--queue", "lockstep"]),
                               ("volcano", ["--scheduler", "volcano", "--queue", "lockstep"])):
            for kind in KINDS:
                with self.subTest(overlay, kind=kind):
                    self.assertEqual(by_name(build(KUBERNETES / "overlays" / overlay / kind)),
                                     by_name(yaml.safe_load_all(render(kind, *words))))

    def test_all_are_valid(self):
        places = sorted(path.parent for path in KUBERNETES.rglob("kustomization.yaml"))
        self.assertEqual(len(places), 12)
        for place in places:
            for manifest in build(place):
                with self.subTest(place.relative_to(KUBERNETES), kind=manifest["kind"]):
                    self.assertEqual(faults(manifest), [])


if __name__ == "__main__":
    unittest.main()
