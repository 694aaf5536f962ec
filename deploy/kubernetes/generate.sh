#!/usr/bin/env bash
# Writes base/*/run.yaml anew, from job.yaml, as `lockstep k8s render` gives them.
#   deploy/kubernetes/generate.sh [build/release/bin/lockstep]
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
lockstep=${1:-$here/../../build/release/bin/lockstep}
for kind in jobset trainjob mpijob job; do
  mkdir -p "$here/base/$kind"
  "$lockstep" k8s render "$here/job.yaml" --kind "$kind" --workers 4 --run-claim runs \
    --data-claim data --image lockstep:latest >"$here/base/$kind/run.yaml"
  printf '%s\n' 'apiVersion: kustomize.config.k8s.io/v1beta1' 'kind: Kustomization' 'resources:' \
    '  - run.yaml' >"$here/base/$kind/kustomization.yaml"
done
