// MPIJob v2beta1. Its image also holds sshd (deploy/container/Containerfile, target mpi).
//
// Thread-safety: pure functions.
#pragma once

#include "deploy/k8s/manifest_request.h"
#include "deploy/k8s/yaml_tree.h"

namespace lockstep::k8s {

Tree mpi_job(const ManifestRequest& request);

}  // namespace lockstep::k8s
