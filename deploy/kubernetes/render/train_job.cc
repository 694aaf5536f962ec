#include "deploy/kubernetes/render/train_job.h"

#include "deploy/kubernetes/render/pod.h"

namespace lockstep::k8s {
namespace {

constexpr char kApi[] = "trainer.kubeflow.org/v1alpha1";
// Trainer's own words: the Job that its TrainJob speaks of, and the container in it.
constexpr char kNode[] = "node";

// The Job's own policy knows the container by its name, which Trainer prescribes.
Tree job_of_nodes(const Tree& pod_template) {
  Tree spec = job_spec(1, pod_template);
  for (auto rule : spec["podFailurePolicy"]["rules"])
    if (rule["onExitCodes"]) rule["onExitCodes"]["containerName"] = text(kNode);
  return spec;
}

// Many runs share a runtime, so its name says what in it is not the same for all. Each TrainJob
// names its own image.
std::string runtime_name(const ManifestRequest& r) {
  std::string name = "lockstep";
  if (!r.scheduler.empty()) name += "-" + r.scheduler;
  if (r.grace_s != ManifestRequest().grace_s) name += "-grace-" + std::to_string(r.grace_s);
  return name;
}

}  // namespace

Tree training_runtime(const ManifestRequest& r) {
  Tree one =
      map({{"name", text(kNode)},
           {"command", texts({kProgram, "agent"})},
           {"env", list({variable_of("LOCKSTEP_NODE", "metadata.name"),
                         variable_of("LOCKSTEP_LAUNCH_ID",
                                     "metadata.labels['batch.kubernetes.io/controller-uid']")})},
           {"securityContext", container_security()}});
  Tree spec = map({{"restartPolicy", text("Never")}});
  if (!r.scheduler.empty()) spec["schedulerName"] = text(r.scheduler);
  add_pod_security(r, spec);
  spec["containers"] = list({one});
  const Tree pod = map({{"spec", spec}});
  const Tree replicated =
      map({{"name", text(kNode)},
           {"template",
            map({{"metadata", map({{"labels", map({{"trainer.kubeflow.org/trainjob-ancestor-step",
                                                    text("trainer")}})}})},
                 {"spec", job_of_nodes(pod)}})}});
  Tree runtime = map({{"mlPolicy", map({{"numNodes", number(1)}, {"torch", map({})}})}});
  if (r.has_volcano()) runtime["podGroupPolicy"] = map({{"volcano", map({})}});
  runtime["template"] =
      map({{"spec", map({{"network", map({{"publishNotReadyAddresses", flag(true)}})},
                         {"failurePolicy", map({{"maxRestarts", number(0)}})},
                         {"replicatedJobs", list({replicated})}})}});
  return map(
      {{"apiVersion", text(kApi)},
       {"kind", text("ClusterTrainingRuntime")},
       {"metadata", map({{"name", text(runtime_name(r))},
                         {"labels", map({{"trainer.kubeflow.org/framework", text("lockstep")}})}})},
       {"spec", runtime}});
}

Tree train_job(const ManifestRequest& r) {
  // JobSet has the TrainJob's name.
  std::vector<std::string> args = agent_words(r, r.name + "-" + kNode + "-0-0." + r.name);
  args.erase(args.begin(), args.begin() + 2);  // the runtime's command
  const Tree pod =
      map({{"spec", map({{"volumes", volumes(r)},
                         {"containers", list({map({{"name", text(kNode)},
                                                   {"volumeMounts", volume_mounts(r)}})})}})}});
  const Tree patched =
      map({{"name", text(kNode)}, {"template", map({{"spec", map({{"template", pod}})}})}});
  const Tree patch =
      map({{"manager", text("lockstep.dev/render")},
           {"trainingRuntimeSpec",
            map({{"template", map({{"spec", map({{"replicatedJobs", list({patched})}})}})}})}});
  Tree trainer = map({{"image", text(r.image)},
                      {"numNodes", number(r.pods())},
                      {"numProcPerNode", number(r.workers_of_pod())},
                      {"args", texts(args)},
                      {"resourcesPerNode", resources(r, true)}});
  if (!r.python.empty()) trainer["env"] = list({python_variable(r)});
  return map({{"apiVersion", text(kApi)},
              {"kind", text("TrainJob")},
              {"metadata", metadata(r, "", true)},
              {"spec", map({{"runtimeRef", map({{"name", text(runtime_name(r))}})},
                            {"trainer", trainer},
                            {"runtimePatches", list({patch})}})}});
}

}  // namespace lockstep::k8s
