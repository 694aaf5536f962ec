// The parts that pods of all kinds share: paths, rights, the command, and how a Job treats exit
// codes.
//
//   /etc/lockstep/job.yaml   the job file, or train.py, from the ConfigMap NAME-job; not for a
//                            module, which is in the image
//   /runs/NAME               the run directory, on a claim that all pods share
//   /data                    the data's claim, read only
//   /tmp                     of the pod alone; the root is read only
//
// Rank 0 makes the run's token in the run directory: no manifest holds a secret.
//
// A pod's probes never look at progress, since a worker may have to wait for others. There is no
// liveness probe: the agent, PID 1, restarts processes that die, and the coordinator finds
// processes that hang. The coordinator's pod is ready when the coordinator answers, for people to
// see.
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "deploy/kubernetes/render/manifest_request.h"
#include "deploy/kubernetes/render/yaml_tree.h"

namespace lockstep::k8s {

inline constexpr char kContainer[] = "lockstep";
inline constexpr char kProgram[] = "/opt/lockstep/bin/lockstep";

std::string run_dir_of(const ManifestRequest& request);

// name, namespace, labels (with Kueue's if there is a queue and `is_top`), annotations.
Tree metadata(const ManifestRequest& request, const std::string& suffix, bool is_top = false);
Tree labels(const ManifestRequest& request);
Tree config_map(const ManifestRequest& request);

Tree variable(const std::string& name, const std::string& value);
Tree python_variable(const ManifestRequest& request);                      // of a script
Tree variable_of(const std::string& name, const std::string& field_path);  // downward API

// `lockstep agent` for a pod whose coordinator is advertised as `host`.
std::vector<std::string> agent_words(const ManifestRequest& request, const std::string& host);

struct Container {
  std::string name = kContainer;
  std::vector<std::string> command;
  std::vector<Tree> env;
  bool has_workers = true;
  bool has_coordinator = false;  // and so a readiness probe
};
Tree container(const ManifestRequest& request, const Container& what);
Tree resources(const ManifestRequest& request, bool has_workers);
Tree container_security();
Tree volumes(const ManifestRequest& request);
Tree volume_mounts(const ManifestRequest& request);

// A pod template: {metadata, spec} around one container.
Tree pod_template(const ManifestRequest& request, const Tree& container,
                  const std::string& subdomain = "");
void add_pod_security(const ManifestRequest& request, Tree& pod_spec);

// A Job with Indexed completions, and what the exit codes of pods mean to it.
Tree job_spec(uint32_t pods, const Tree& pod_template);

}  // namespace lockstep::k8s
