// `lockstep k8s render`: the manifests of a run on Kubernetes.
#include <cstdio>
#include <memory>

#include "comm/base/file.h"
#include "comm/base/limits.h"
#include "comm/environment/standard_streams.h"
#include "comm/net/network.h"
#include "data/source/url.h"
#include "deploy/cli/base/console.h"
#include "deploy/cli/commands/commands.h"
#include "deploy/cli/commands/job_words.h"
#include "deploy/cli/job/job_resolve.h"
#include "deploy/cli/job/job_schema.h"
#include "deploy/cli/job/job_script.h"
#include "deploy/cli/run/load_job.h"
#include "deploy/cli/script/script_block.h"
#include "deploy/kubernetes/render/pod.h"
#include "deploy/kubernetes/render/render.h"

namespace lockstep {
namespace {

struct K8sArguments {
  std::vector<std::string> positional;
  k8s::ManifestRequest request;
};

const std::map<std::string, k8s::Kind> kKinds = {{"jobset", k8s::Kind::kJobSet},
                                                 {"trainjob", k8s::Kind::kTrainJob},
                                                 {"mpijob", k8s::Kind::kMpiJob},
                                                 {"job", k8s::Kind::kJob}};

// Files are read in the pods, where the job file lies in a directory of its own.
Status check_paths(const JobValues& values) {
  for (const auto& [key, value] : values) {
    const JobKey* const row = find_job_key(key);
    if (row == nullptr || !row->is_path || value.items.empty()) continue;
    const std::string& path = value.items[0];
    if (source::is_url(path)) continue;
    if (!path.empty() && path.front() != '/')
      return Status(Code::kUsage, key + " is \"" + path + "\" (" + value.origin +
                                      ") but must be an absolute path in the pods, as in /data/" +
                                      path);
  }
  return Status::ok();
}

// True below one of the volumes of the pods.
bool is_mounted(const std::string& path, const k8s::ManifestRequest& request) {
  const auto is_below = [&path](const std::string& mount) {
    return path == mount || path.starts_with(mount + "/");
  };
  return is_below("/runs") || is_below("/tmp") ||
         (!request.data_claim.empty() && is_below("/data"));
}

// Warns of paths that only the image can have, and of networks that reach no other pod: they may be
// right, but rarely are.
void warn_of(const JobValues& values, const k8s::ManifestRequest& request) {
  for (const auto& [key, value] : values) {
    const JobKey* const row = find_job_key(key);
    const std::string path = value.items.empty() ? "" : value.items[0];
    if (key == "comm.network" && rpc::is_of_one_machine(path) && request.pods() > 1)
      print_error("warning: %s is %s (%s), which reaches no other pod; leave it out\n", key.c_str(),
                  path.c_str(), value.origin.c_str());
    if (row == nullptr || !row->is_path || path.empty() || source::is_url(path)) continue;
    if (!is_mounted(path, request))
      print_error(
          "warning: %s is %s (%s), which lies on no volume of the pods: the image must have it, or "
          "give a claim with --data-claim and name the path below /data\n",
          key.c_str(), path.c_str(), value.origin.c_str());
  }
}

// Refuses what no pod would take. The pods check what only they can know (files, GPUs).
Result<wire::JobSpec> job_to_render(const JobRequest& files, const k8s::ManifestRequest& request) {
  LOCKSTEP_ASSIGN_OR_RETURN(JobValues values,
                            parse_job_file(request.job_text, files.file, request.job_file()));
  const std::vector<std::string> given = {"comm.network=eth0"};
  LOCKSTEP_ASSIGN_OR_RETURN(const JobValues network, parse_job_overrides(given));
  overlay(values, network);
  LOCKSTEP_ASSIGN_OR_RETURN(const JobValues overrides, parse_job_overrides(request.overrides));
  overlay(values, overrides);
  // A package is in the image, and its file has no place of ours there.
  if (const auto module = values.find("script.module");
      request.is_script && module != values.end() && !module->second.items[0].empty())
    values.erase("script.path");
  LOCKSTEP_RETURN_IF_ERROR(check_paths(values));
  warn_of(values, request);
  values.try_emplace("cluster.workers",
                     JobValue{{std::to_string(request.workers)}, "--workers", false});
  JobContext context;
  const uint32_t gpus = request.gpus;
  context.count_gpus = [gpus]() -> Result<uint32_t> {
    if (gpus > 0) return gpus;
    return Status(Code::kConfig, "--gpus gives the pods no GPU");
  };
  LOCKSTEP_ASSIGN_OR_RETURN(wire::JobSpec job, resolve_job(values, context));
  if (job.cluster().workers() > request.workers)
    return Status(Code::kUsage, "cluster.workers is " + std::to_string(job.cluster().workers()) +
                                    " but the pods have " + std::to_string(request.workers) +
                                    " workers (--workers); give at least as many");
  if (job.comm().backend() == "mpi" && request.kind != k8s::Kind::kMpiJob)
    return Status(Code::kConfig,
                  "comm.backend is mpi, but only an MPIJob (--kind mpijob) makes an MPI world; "
                  "give it, or take host or auto");
  return job;
}

Result<std::string> manifests(const K8sArguments& arguments) {
  k8s::ManifestRequest request = arguments.request;
  JobRequest files;
  LOCKSTEP_RETURN_IF_ERROR(split_arguments(arguments.positional, files));
  if (files.file.empty())
    return Status(Code::kUsage, "no job file given; try 'lockstep k8s render JOB.yaml'");
  LOCKSTEP_ASSIGN_OR_RETURN(request.job_text, read_file(files.file, limits::kJobFileBytes));
  request.is_script = is_script_file(files.file);
  request.overrides = files.overrides;
  LOCKSTEP_ASSIGN_OR_RETURN(const wire::JobSpec job, job_to_render(files, request));
  if (request.is_script) request.module = job.script().module();
  request.grace_s = job.cluster().grace_s();
  request.enters_mpi = job.comm().backend() == "mpi";
  if (request.name.empty()) request.name = k8s::name_from(job.job());
  LOCKSTEP_RETURN_IF_ERROR(k8s::check(request));
  return k8s::render(request);
}

constexpr char kK8sExamples[] =
    "Writes all manifests of a run to stdout, and sends nothing. Paths in the job file are paths "
    "in\n"
    "the pods: the data claim is /data. The run directory is /runs/NAME on the run claim, which "
    "must\n"
    "be ReadWriteMany. Applying the same manifest again continues the run. With -m, the image has\n"
    "the package, in its working directory or installed.\n"
    "Examples:\n"
    "  lockstep k8s render shoes.yaml --image registry.example/lockstep:0.3 --run-claim runs\n"
    "  lockstep k8s render shoes.yaml --kind trainjob --workers 16 --gpus 8 --queue team-a \\\n"
    "    --image registry.example/lockstep:0.3 --run-claim runs --data-claim shoes \\\n"
    "    train.epochs=3 | kubectl apply -f -\n"
    "\n"
    "Exit codes: 0 written, 64 an option or the job is wrong, 66 no such job file.";

void add_render_options(CLI::App& command, K8sArguments& arguments) {
  k8s::ManifestRequest& request = arguments.request;
  add_job_words(command, kJobWords, arguments.positional);
  command
      .add_option_function<std::string>(
          "--kind,-k", [&request](const std::string& kind) { request.kind = kKinds.at(kind); },
          "jobset (default), trainjob, mpijob or job (Indexed)")
      ->check(CLI::IsMember(kKinds));
  command
      .add_option("--image", request.image,
                  "Image built from deploy/container; for mpijob, from its target mpi")
      ->required();
  command.add_option(
      "--python", request.python,
      "For a script: the Python of the image, which has lockstep and torch; default: "
      "the image's LOCKSTEP_PYTHON, or its python3");
  command.add_option("--run-claim", request.run_claim, "Volume claim of the run directory")
      ->required();
  command.add_option("--data-claim", request.data_claim, "Volume claim of the data, read only");
  command.add_option("--workers,-n", request.workers, "Number of workers, over all pods")
      ->capture_default_str();
  command
      .add_option("--gpus", request.gpus, "GPUs, and workers, of each pod; 0: one worker, no GPU")
      ->check(CLI::Range(0u, 64u));
  command.add_option("--cpu", request.cpu, "CPUs of a pod with workers")->default_val("2");
  command.add_option("--memory", request.memory,
                     "Memory of a pod with workers; default: 4Gi, or 16Gi for each of its GPUs");
  command.add_option("--name", request.name, "Name of the run; default: made from the job's name");
  command.add_option("--namespace", request.name_space,
                     "Namespace; default: that of the user who applies it");
  command.add_option("--queue", request.queue, "Kueue's LocalQueue; with Volcano its queue");
  command.add_option("--scheduler", request.scheduler,
                     "Scheduler, such as volcano; default: the cluster's own");
}

}  // namespace

void add_k8s_command(CLI::App& app, Commands& commands) {
  auto* group = app.add_subcommand("k8s", "Manifests for Kubernetes");
  group->require_subcommand(1);
  auto* command = group->add_subcommand("render", "Write a run's manifests to stdout");
  const auto arguments = std::make_shared<K8sArguments>();
  add_render_options(*command, *arguments);
  command->footer(kK8sExamples);
  commands[command] = [arguments] {
    const auto text = manifests(*arguments);
    if (!text.is_ok()) return report(text.status());
    std::fputs(text->c_str(), stdout);
    return 0;
  };
}

}  // namespace lockstep
