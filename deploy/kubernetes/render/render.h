// Makes all manifests of a run from a request.
//
//   jobset    ConfigMap, JobSet: a Job of the coordinator alone, a Job of the workers. JobSet makes
//             the headless Service, which names pods before they are ready
//   job       ConfigMap, headless Service, Indexed Job: pod 0 keeps the coordinator too
//   trainjob  ConfigMap, ClusterTrainingRuntime "lockstep" (the same for all runs), TrainJob:
//             node 0 keeps the coordinator too; Trainer gives the PET_* variables
//   mpijob    ConfigMap, MPIJob v2beta1: mpirun starts the agents over ssh; rank 0 is on worker 0.
//             sshd gets the TERM there, so a preStop hook drains the node first. mpirun cannot lose
//             a pod: the run then stops at a checkpoint (cluster.min_workers: all), and the
//             launcher's next try continues it
//
// With Volcano's scheduler, jobset and job come with a PodGroup.
//
// REQUIRES: check(request) is ok.
//
// Thread-safety: pure functions.
#pragma once

#include <string>

#include "deploy/kubernetes/render/manifest_request.h"

namespace lockstep::k8s {

std::string render(const ManifestRequest& request);

}  // namespace lockstep::k8s
