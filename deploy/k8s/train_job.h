// Kubeflow Trainer v2: what all runs have in common is the runtime, what one run adds the TrainJob.
//
// Thread-safety: pure functions.
#pragma once

#include "deploy/k8s/request.h"
#include "deploy/k8s/yaml_tree.h"

namespace lockstep::k8s {

// ClusterTrainingRuntime "lockstep": depends on the request's scheduler, image and grace time only.
Tree training_runtime(const Request& request);
Tree train_job(const Request& request);

}  // namespace lockstep::k8s
