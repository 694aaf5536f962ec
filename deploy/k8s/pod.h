// The parts that the pods of all kinds are made of: where things lie, what a pod may do, what it
// runs, and what a Job makes of its end.
//
//   /etc/lockstep/job.yaml   the job file, from the ConfigMap NAME-job
//   /runs/NAME               the run directory, on the claim that all pods share
//   /data                    the data's claim, read only
//   /tmp                     of the pod alone; the root is read only
//
// The run's token is made by rank 0 in the run directory: no manifest holds a secret.
//
// A pod's probes never look at progress: a worker waits for others for as long as it has to. There
// is no liveness probe at all: the agent, PID 1, starts again what dies, and the coordinator finds
// what hangs. The coordinator's pod is ready when the coordinator answers, for people to see.
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "deploy/k8s/request.h"
#include "deploy/k8s/yaml_tree.h"

namespace lockstep::k8s {

inline constexpr char kContainer[] = "lockstep";
inline constexpr char kProgram[] = "/opt/lockstep/bin/lockstep";
inline constexpr char kJobFile[] = "/etc/lockstep/job.yaml";

std::string run_dir_of(const Request& request);

// name, namespace, labels (with Kueue's where there is a queue and `is_top`), annotations.
Tree metadata(const Request& request, const std::string& suffix, bool is_top = false);
Tree labels(const Request& request);
Tree config_map(const Request& request);

Tree variable(const std::string& name, const std::string& value);
Tree variable_of(const std::string& name, const std::string& field_path);  // downward API

// `lockstep agent` for a pod whose coordinator is advertised as `host`.
std::vector<std::string> agent_words(const Request& request, const std::string& host);

struct Container {
  std::string name = kContainer;
  std::vector<std::string> command;
  std::vector<Tree> env;
  bool has_workers = true;
  bool has_coordinator = false;  // its own: there is a readiness probe
};
Tree container(const Request& request, const Container& what);
Tree resources(const Request& request, bool has_workers);
Tree container_security();
Tree volumes(const Request& request);
Tree volume_mounts(const Request& request);

// Of a pod template: {metadata, spec} around one container.
Tree pod_template(const Request& request, const Tree& container, const std::string& subdomain = "");
void add_pod_security(const Request& request, Tree& pod_spec);

// Of a Job with Indexed completions: what its pods' exit codes mean.
Tree job_spec(uint32_t pods, const Tree& pod_template);

}  // namespace lockstep::k8s
