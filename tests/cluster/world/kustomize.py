"""The result of `kustomize build` for the directories in deploy/kubernetes. It implements only the
part of kustomize that they use: resources (files and directories) and patches in JSON 6902 with a
target's kind."""
import pathlib

import yaml

KNOWN = {"apiVersion", "kind", "resources", "patches"}


def build(directory):
    directory = pathlib.Path(directory)
    kustomization = yaml.safe_load((directory / "kustomization.yaml").read_text())
    assert set(kustomization) <= KNOWN, f"{directory}: {set(kustomization) - KNOWN} is not known here"
    manifests = []
    for name in kustomization["resources"]:
        path = directory / name
        manifests += build(path) if path.is_dir() else yaml.safe_load_all(path.read_text())
    for patch in kustomization.get("patches", []):
        targets = [m for m in manifests if m["kind"] == patch["target"]["kind"]]
        assert targets and set(patch["target"]) == {"kind"}, f"{directory}: {patch['target']}"
        may_rename = patch.get("options", {}).get("allowNameChange", False)
        for operation in yaml.safe_load(patch["patch"]):
            assert may_rename or operation["path"] != "/metadata/name", f"{directory}: a new name"
            for manifest in targets:
                apply(manifest, operation)
    return manifests


def apply(manifest, operation):
    assert operation["op"] in ("add", "replace"), operation
    *way, last = [step.replace("~1", "/").replace("~0", "~")
                  for step in operation["path"].lstrip("/").split("/")]
    place = manifest
    for step in way:
        place = place[int(step) if isinstance(place, list) else step]
    if operation["op"] == "replace":
        assert last in place, operation
    if isinstance(place, list):
        place.insert(len(place) if last == "-" else int(last), operation["value"])
    else:
        place[last] = operation["value"]
