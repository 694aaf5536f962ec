// MPIJob v2beta1. Its image also holds sshd (deploy/container/Containerfile, target mpi).
//
// Thread-safety: pure functions.
#pragma once

#include "deploy/k8s/request.h"
#include "deploy/k8s/yaml_tree.h"

namespace lockstep::k8s {

Tree mpi_job(const Request& request);

}  // namespace lockstep::k8s
