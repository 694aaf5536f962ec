#include "deploy/kubernetes/render/mpi_job.h"

#include <algorithm>

#include "deploy/kubernetes/render/pod.h"

namespace lockstep::k8s {
namespace {

constexpr char kKeys[] = "/home/lockstep/.ssh";  // where the operator puts them
constexpr char kSshdConfig[] = "/opt/lockstep/etc/sshd_config";
constexpr uint32_t kLaunches = 100;  // each goes on from the newest checkpoint
// From the launcher's TERM to its ranks' end: mpirun's own second is little for a checkpoint.
constexpr uint32_t kMostPatienceS = 60;

// Every rank keeps one worker. mpirun's own checks of a terminal and of cores do not fit pods.
std::vector<std::string> mpirun_words(const ManifestRequest& r) {
  std::vector<std::string> words = {"mpirun",
                                    "-np",
                                    std::to_string(r.workers),
                                    "--bind-to",
                                    "none",
                                    "--mca",
                                    "odls_base_sigkill_timeout",
                                    std::to_string(std::min(r.grace_s, kMostPatienceS))};
  // A worker that dies after it has begun MPI is started again, and is no end of the launch.
  if (r.enters_mpi) words.insert(words.end(), {"--mca", "orte_allowed_exit_without_sync", "1"});
  if (!r.python.empty()) words.insert(words.end(), {"-x", "LOCKSTEP_PYTHON"});  // not by sshd
  ManifestRequest all = r;
  // A pod that is lost ends mpirun, so a pod that is drained ends the run at a checkpoint.
  all.overrides.insert(all.overrides.begin(), "cluster.min_workers=" + std::to_string(r.workers));
  const auto agent = agent_words(all, r.name + "-worker-0." + r.name);
  words.insert(words.end(), agent.begin(), agent.end());
  return words;
}

// The launcher is no Job of ours: it has no podFailurePolicy, only a number of tries.
Tree launcher(const ManifestRequest& r) {
  Container what;
  what.command = mpirun_words(r);
  what.has_workers = false;
  return map({{"replicas", number(1)},
              {"restartPolicy", text("Never")},
              {"template", pod_template(r, container(r, what))}});
}

Tree worker(const ManifestRequest& r) {
  Container what;
  what.command = {"/usr/sbin/sshd", "-D", "-e", "-f", kSshdConfig};
  Tree one = container(r, what);
  const std::vector<std::string> drain = {kProgram, "drain", "--run-dir", run_dir_of(r), "--local"};
  one["lifecycle"] = map({{"preStop", map({{"exec", map({{"command", texts(drain)}})}})}});
  return map({{"replicas", number(r.pods())},
              {"restartPolicy", text("Never")},
              {"template", pod_template(r, one)}});
}

}  // namespace

Tree mpi_job(const ManifestRequest& r) {
  Tree policy = map({{"cleanPodPolicy", text("Running")}, {"backoffLimit", number(kLaunches)}});
  if (r.has_volcano()) {
    Tree scheduling = map({{"minAvailable", number(r.pods() + 1)}});
    if (!r.queue.empty()) scheduling["queue"] = text(r.queue);
    policy["schedulingPolicy"] = scheduling;
  }
  return map({{"apiVersion", text("kubeflow.org/v2beta1")},
              {"kind", text("MPIJob")},
              {"metadata", metadata(r, "", true)},
              {"spec", map({{"slotsPerWorker", number(r.workers_of_pod())},
                            {"mpiImplementation", text("OpenMPI")},
                            {"launcherCreationPolicy", text("WaitForWorkersReady")},
                            {"sshAuthMountPath", text(kKeys)},
                            {"runPolicy", policy},
                            {"mpiReplicaSpecs",
                             map({{"Launcher", launcher(r)}, {"Worker", worker(r)}})}})}});
}

}  // namespace lockstep::k8s
