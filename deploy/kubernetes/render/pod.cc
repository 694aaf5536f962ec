#include "deploy/kubernetes/render/pod.h"

namespace lockstep::k8s {
namespace {

constexpr uint32_t kUser = 65532;          // of the image (deploy/container/Containerfile)
constexpr uint32_t kAfterGraceS = 30;      // for what the supervisor does beyond the grace time
constexpr uint32_t kBackoffLimit = 1'000;  // crashes of pods; a worker's crash never ends a pod
constexpr uint32_t kProbePeriodS = 15;
constexpr uint32_t kProbeTimeoutS = 10;
constexpr uint32_t kSharedGibOfAGpu = 1;    // NCCL's segments of a process; pods have 64 MiB else
constexpr char kCoordinatorCpu[] = "500m";  // where it has a pod of its own
constexpr char kCoordinatorMemory[] = "1Gi";

// Not tied to progress: `status` answers for a run that waits, too.
Tree readiness_probe(const ManifestRequest& r) {
  return map({{"exec", map({{"command", texts({kProgram, "status", "--run-dir", run_dir_of(r)})}})},
              {"periodSeconds", number(kProbePeriodS)},
              {"timeoutSeconds", number(kProbeTimeoutS)}});
}

Tree exit_codes_rule(const char* action, const std::vector<uint32_t>& codes) {
  std::vector<Tree> values;
  for (const uint32_t code : codes) values.push_back(number(code));
  return map({{"action", text(action)},
              {"onExitCodes", map({{"containerName", text(kContainer)},
                                   {"operator", text("In")},
                                   {"values", list(values)}})}});
}

// Preempted runs, and runs that stopped at a checkpoint, go on. A failure that would recur ends a
// run.
Tree pod_failure_policy() {
  const Tree disruption = map({{"type", text("DisruptionTarget")}, {"status", text("True")}});
  return map(
      {{"rules",
        list({map({{"action", text("Ignore")}, {"onPodConditions", list({disruption})}}),
              exit_codes_rule("Ignore", {75}), exit_codes_rule("FailJob", {64, 65, 66, 78})})}});
}

}  // namespace

std::string run_dir_of(const ManifestRequest& request) {
  return "/runs/" + request.name;
}

Tree labels(const ManifestRequest& r) {
  return map(
      {{"app.kubernetes.io/name", text("lockstep")}, {"app.kubernetes.io/instance", text(r.name)}});
}

Tree metadata(const ManifestRequest& r, const std::string& suffix, bool is_top) {
  Tree all = map({{"name", text(r.name + suffix)}});
  if (!r.name_space.empty()) all["namespace"] = text(r.name_space);
  Tree with = labels(r);
  if (is_top && !r.queue.empty() && !r.has_volcano())
    with["kueue.x-k8s.io/queue-name"] = text(r.queue);
  all["labels"] = with;
  return all;
}

Tree config_map(const ManifestRequest& r) {
  return map({{"apiVersion", text("v1")},
              {"kind", text("ConfigMap")},
              {"metadata", metadata(r, "-job")},
              {"data", map({{r.job_name(), text(r.job_text)}})}});
}

Tree variable(const std::string& name, const std::string& value) {
  return map({{"name", text(name)}, {"value", text(value)}});
}

Tree python_variable(const ManifestRequest& r) {
  return variable("LOCKSTEP_PYTHON", r.python);
}

Tree variable_of(const std::string& name, const std::string& field_path) {
  return map({{"name", text(name)},
              {"valueFrom", map({{"fieldRef", map({{"fieldPath", text(field_path)}})}})}});
}

std::vector<std::string> agent_words(const ManifestRequest& r, const std::string& host) {
  std::vector<std::string> words = {kProgram, "agent"};
  if (r.has_job_file()) words.push_back(r.job_file());
  words.insert(words.end(), {"--run-dir", run_dir_of(r)});
  if (r.kind != Kind::kMpiJob)
    words.insert(words.end(), {"--workers", std::to_string(r.workers_of_pod())});
  words.insert(words.end(), {"comm.network=eth0", "comm.advertise=" + host});
  words.insert(words.end(), r.overrides.begin(), r.overrides.end());  // script.module among them
  return words;
}

Tree resources(const ManifestRequest& r, bool has_workers) {
  Tree requests = map({{"cpu", text(has_workers ? r.cpu : kCoordinatorCpu)},
                       {"memory", text(has_workers ? r.memory_of_pod() : kCoordinatorMemory)}});
  Tree limits = map({{"memory", text(has_workers ? r.memory_of_pod() : kCoordinatorMemory)}});
  if (has_workers && r.gpus > 0) limits["nvidia.com/gpu"] = text(std::to_string(r.gpus));
  return map({{"requests", requests}, {"limits", limits}});
}

Tree container_security() {
  return map({{"allowPrivilegeEscalation", flag(false)},
              {"readOnlyRootFilesystem", flag(true)},
              {"capabilities", map({{"drop", texts({"ALL"})}})}});
}

Tree volumes(const ManifestRequest& r) {
  const auto claim = [](const std::string& name, bool read_only) {
    Tree source = map({{"claimName", text(name)}});
    if (read_only) source["readOnly"] = flag(true);
    return source;
  };
  std::vector<Tree> all;
  if (r.has_job_file())
    all.push_back(
        map({{"name", text("job")}, {"configMap", map({{"name", text(r.name + "-job")}})}}));
  all.push_back(
      map({{"name", text("runs")}, {"persistentVolumeClaim", claim(r.run_claim, false)}}));
  all.push_back(map({{"name", text("tmp")}, {"emptyDir", map({})}}));
  if (r.gpus > 0)
    all.push_back(
        map({{"name", text("shm")},
             {"emptyDir",
              map({{"medium", text("Memory")},
                   {"sizeLimit", text(std::to_string(kSharedGibOfAGpu * r.gpus) + "Gi")}})}}));
  if (!r.data_claim.empty())
    all.push_back(
        map({{"name", text("data")}, {"persistentVolumeClaim", claim(r.data_claim, true)}}));
  return list(all);
}

Tree volume_mounts(const ManifestRequest& r) {
  const auto mount = [](const char* name, const char* path, bool read_only) {
    Tree one = map({{"name", text(name)}, {"mountPath", text(path)}});
    if (read_only) one["readOnly"] = flag(true);
    return one;
  };
  std::vector<Tree> all;
  if (r.has_job_file()) all.push_back(mount("job", "/etc/lockstep", true));
  all.push_back(mount("runs", "/runs", false));
  all.push_back(mount("tmp", "/tmp", false));
  if (r.gpus > 0) all.push_back(mount("shm", "/dev/shm", false));
  if (!r.data_claim.empty()) all.push_back(mount("data", "/data", true));
  return list(all);
}

Tree container(const ManifestRequest& r, const Container& what) {
  Tree all =
      map({{"name", text(what.name)}, {"image", text(r.image)}, {"command", texts(what.command)}});
  std::vector<Tree> env = what.env;
  if (!r.python.empty()) env.push_back(python_variable(r));
  if (!env.empty()) all["env"] = list(env);
  all["resources"] = resources(r, what.has_workers);
  all["securityContext"] = container_security();
  all["volumeMounts"] = volume_mounts(r);
  if (what.has_coordinator) all["readinessProbe"] = readiness_probe(r);
  return all;
}

void add_pod_security(const ManifestRequest& r, Tree& spec) {
  spec["automountServiceAccountToken"] = flag(false);
  spec["enableServiceLinks"] = flag(false);
  spec["terminationGracePeriodSeconds"] = number(r.grace_s + kAfterGraceS);
  spec["securityContext"] = map({{"runAsNonRoot", flag(true)},
                                 {"runAsUser", number(kUser)},
                                 {"runAsGroup", number(kUser)},
                                 {"fsGroup", number(kUser)},
                                 {"fsGroupChangePolicy", text("OnRootMismatch")},
                                 {"seccompProfile", map({{"type", text("RuntimeDefault")}})}});
}

Tree pod_template(const ManifestRequest& r, const Tree& container, const std::string& subdomain) {
  Tree spec = map({{"restartPolicy", text("Never")}});
  if (!subdomain.empty()) spec["subdomain"] = text(subdomain);
  if (!r.scheduler.empty()) spec["schedulerName"] = text(r.scheduler);
  add_pod_security(r, spec);
  spec["containers"] = list({container});
  spec["volumes"] = volumes(r);
  Tree meta = map({{"labels", labels(r)}});
  if (r.has_volcano()) meta["annotations"] = map({{"scheduling.k8s.io/group-name", text(r.name)}});
  return map({{"metadata", meta}, {"spec", spec}});
}

Tree job_spec(uint32_t pods, const Tree& pod_template) {
  return map({{"completionMode", text("Indexed")},
              {"completions", number(pods)},
              {"parallelism", number(pods)},
              {"backoffLimit", number(kBackoffLimit)},
              {"podReplacementPolicy", text("Failed")},
              {"podFailurePolicy", pod_failure_policy()},
              {"template", pod_template}});
}

}  // namespace lockstep::k8s
