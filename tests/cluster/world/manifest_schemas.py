"""Checks manifests as the API server does, with the schemas of tests/cluster/schemas. A field that
is not listed is an error, as with `kubectl apply --validate=strict`.

It does not evaluate rules in CEL (x-kubernetes-validations). ConfigMap, Service and Volcano's
PodGroup have no CRD here: it knows only the fields that we use."""
import functools
import gzip
import pathlib

import jsonschema
import yaml

SCHEMAS = pathlib.Path(__file__).resolve().parents[1] / "schemas"
NAME = {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", "maxLength": 253}
LABELS = {"type": "object", "additionalProperties": {
    "type": "string", "pattern": "^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$", "maxLength": 63}}
TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}
METADATA = {"type": "object", "required": ["name"], "additionalProperties": False,
            "properties": {"name": NAME, "namespace": NAME, "labels": LABELS, "annotations": TEXTS}}
CRDS = {"JobSet": "jobset.x-k8s.io_jobsets", "TrainJob": "trainer.kubeflow.org_trainjobs",
        "ClusterTrainingRuntime": "trainer.kubeflow.org_clustertrainingruntimes",
        "MPIJob": "kubeflow.org_mpijobs"}


def strict(schema):
    """The schema, changed so that it refuses every field that it does not list."""
    if isinstance(schema, list):
        return [strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    out = {key: strict(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and "additionalProperties" not in schema \
            and not schema.get("x-kubernetes-preserve-unknown-fields"):
        out["additionalProperties"] = False
    return out


def top(api_version, kind, fields, required=()):
    return {"type": "object", "additionalProperties": False,
            "required": ["apiVersion", "kind", "metadata", *required],
            "properties": {"apiVersion": {"const": api_version}, "kind": {"const": kind},
                           "metadata": METADATA, **fields}}


@functools.lru_cache(maxsize=None)
def crd(kind):
    """(apiVersion, schema) of a kind, in its stored version."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml's own is ten times faster
    text = gzip.decompress((SCHEMAS / (CRDS[kind] + ".yaml.gz")).read_bytes())
    definition = yaml.load(text, Loader=loader)
    spec = definition["spec"]
    version = next(v for v in spec["versions"] if v["storage"])
    schema = strict(version["schema"]["openAPIV3Schema"])
    schema["properties"]["metadata"] = METADATA
    schema["required"] = ["apiVersion", "kind", "metadata", "spec"]
    return f"{spec['group']}/{version['name']}", schema


def job_spec():
    jobs = crd("JobSet")[1]["properties"]["spec"]["properties"]["replicatedJobs"]["items"]
    return jobs["properties"]["template"]["properties"]["spec"]


def schema_of(manifest):
    kind = manifest["kind"]
    if kind in CRDS:
        api_version, schema = crd(kind)
        schema["properties"]["apiVersion"] = {"const": api_version}
        return schema
    if kind == "Job":
        return top("batch/v1", kind, {"spec": job_spec()}, ["spec"])
    if kind == "ConfigMap":
        return top("v1", kind, {"data": TEXTS}, ["data"])
    if kind == "Service":
        return top("v1", kind, {"spec": {"type": "object", "additionalProperties": False,
                                         "properties": {"clusterIP": {"const": "None"},
                                                        "publishNotReadyAddresses": {"type": "boolean"},
                                                        "selector": LABELS}}}, ["spec"])
    if kind == "PodGroup":
        return top("scheduling.volcano.sh/v1beta1", kind, {"spec": {
            "type": "object", "additionalProperties": False,
            "properties": {"minMember": {"type": "integer", "minimum": 1}, "queue": NAME}}}, ["spec"])
    raise AssertionError(f"no schema for {kind}")


def faults(manifest):
    """The defects of a manifest, a line each."""
    validator = jsonschema.Draft7Validator(schema_of(manifest))
    return [f"{manifest['kind']}.{'.'.join(map(str, error.absolute_path))}: {error.message[:200]}"
            for error in validator.iter_errors(manifest)]
