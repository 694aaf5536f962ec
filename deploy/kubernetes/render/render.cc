#include "deploy/kubernetes/render/render.h"

#include "deploy/kubernetes/render/mpi_job.h"
#include "deploy/kubernetes/render/pod.h"
#include "deploy/kubernetes/render/train_job.h"
#include "deploy/kubernetes/render/yaml_tree.h"

namespace lockstep::k8s {
namespace {

// A pod's own name, which the pod that comes in its place does not have, is its node's.
Tree node_variable() {
  return variable_of("LOCKSTEP_NODE", "metadata.name");
}

Tree pods_variable(const ManifestRequest& r) {
  return variable("LOCKSTEP_PODS", std::to_string(r.pods()));
}

// The same text for pods of both Jobs, and another one when JobSet begins all of them again.
std::vector<Tree> jobset_env(const ManifestRequest& r, const char* role) {
  return {node_variable(),
          pods_variable(r),
          variable("LOCKSTEP_POD_ROLE", role),
          variable_of("JOBSET_UID", "metadata.labels['jobset.sigs.k8s.io/jobset-uid']"),
          variable_of("JOBSET_RESTART_ATTEMPT",
                      "metadata.labels['jobset.sigs.k8s.io/restart-attempt']"),
          variable("LOCKSTEP_LAUNCH_ID", "$(JOBSET_UID)/$(JOBSET_RESTART_ATTEMPT)")};
}

Tree replicated_job(const ManifestRequest& r, const char* name, bool is_coordinator) {
  const std::string host = r.name + "-coordinator-0-0." + r.name;
  Container what;
  what.command = agent_words(r, host);
  what.env = jobset_env(r, is_coordinator ? "coordinator" : "worker");
  what.has_workers = !is_coordinator;
  what.has_coordinator = is_coordinator;
  const Tree spec = job_spec(is_coordinator ? 1 : r.pods(), pod_template(r, container(r, what)));
  return map({{"name", text(name)}, {"replicas", number(1)}, {"template", map({{"spec", spec}})}});
}

Tree job_set(const ManifestRequest& r) {
  return map({{"apiVersion", text("jobset.x-k8s.io/v1alpha2")},
              {"kind", text("JobSet")},
              {"metadata", metadata(r, "", true)},
              {"spec", map({{"network", map({{"enableDNSHostnames", flag(true)},
                                             {"publishNotReadyAddresses", flag(true)}})},
                            {"coordinator", map({{"replicatedJob", text("coordinator")},
                                                 {"jobIndex", number(0)},
                                                 {"podIndex", number(0)}})},
                            {"failurePolicy", map({{"maxRestarts", number(0)}})},
                            {"replicatedJobs", list({replicated_job(r, "coordinator", true),
                                                     replicated_job(r, "worker", false)})}})}});
}

Tree headless_service(const ManifestRequest& r) {
  return map({{"apiVersion", text("v1")},
              {"kind", text("Service")},
              {"metadata", metadata(r, "")},
              {"spec", map({{"clusterIP", text("None")},
                            {"publishNotReadyAddresses", flag(true)},
                            {"selector", labels(r)}})}});
}

Tree indexed_job(const ManifestRequest& r) {
  Container what;
  what.command = agent_words(r, r.name + "-0." + r.name);
  what.env = {
      node_variable(), pods_variable(r),
      variable_of("LOCKSTEP_LAUNCH_ID", "metadata.labels['batch.kubernetes.io/controller-uid']")};
  return map({{"apiVersion", text("batch/v1")},
              {"kind", text("Job")},
              {"metadata", metadata(r, "", true)},
              {"spec", job_spec(r.pods(), pod_template(r, container(r, what), r.name))}});
}

// All pods or none: a run of half of them would only hold what others could use.
Tree pod_group(const ManifestRequest& r) {
  const bool has_coordinator_pod = r.kind == Kind::kJobSet;
  Tree spec = map({{"minMember", number(r.pods() + (has_coordinator_pod ? 1 : 0))}});
  if (!r.queue.empty()) spec["queue"] = text(r.queue);
  return map({{"apiVersion", text("scheduling.volcano.sh/v1beta1")},
              {"kind", text("PodGroup")},
              {"metadata", metadata(r, "")},
              {"spec", spec}});
}

}  // namespace

std::string render(const ManifestRequest& r) {
  std::vector<Tree> documents;
  if (r.has_job_file()) documents.push_back(config_map(r));
  if (r.has_volcano() && (r.kind == Kind::kJobSet || r.kind == Kind::kJob))
    documents.push_back(pod_group(r));
  switch (r.kind) {
    case Kind::kJobSet:
      documents.push_back(job_set(r));
      break;
    case Kind::kJob:
      documents.push_back(headless_service(r));
      documents.push_back(indexed_job(r));
      break;
    case Kind::kTrainJob:
      documents.push_back(training_runtime(r));
      documents.push_back(train_job(r));
      break;
    case Kind::kMpiJob:
      documents.push_back(mpi_job(r));
      break;
  }
  return to_yaml(documents);
}

}  // namespace lockstep::k8s
