// MPIJob v2beta1. Its image also holds sshd (deploy/container/Containerfile, target mpi).
//
// Thread-safety: pure functions.
#pragma once

#include "deploy/kubernetes/render/manifest_request.h"
#include "deploy/kubernetes/render/yaml_tree.h"

namespace lockstep::k8s {

Tree mpi_job(const ManifestRequest& request);

}  // namespace lockstep::k8s
