// Kubeflow Trainer v2: the runtime holds what all runs share, the TrainJob what one run adds.
//
// Thread-safety: pure functions.
#pragma once

#include "deploy/kubernetes/render/manifest_request.h"
#include "deploy/kubernetes/render/yaml_tree.h"

namespace lockstep::k8s {

// ClusterTrainingRuntime, which runs share: the same for all requests with the same scheduler and
// grace time, which its name says if they are not the usual ones (lockstep-volcano,
// lockstep-grace-120).
Tree training_runtime(const ManifestRequest& request);
Tree train_job(const ManifestRequest& request);

}  // namespace lockstep::k8s
