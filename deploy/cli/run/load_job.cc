#include "deploy/cli/run/load_job.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "comm/base/file.h"
#include "comm/base/gpu/gpu_driver.h"
#include "comm/base/limits.h"
#include "comm/environment/progress_line.h"
#include "comm/environment/usable_cores.h"
#include "comm/tls/tls_context.h"
#include "data/bpe/vocabulary.h"
#include "data/open/detect_format.h"
#include "data/open/job_sample_cut.h"
#include "deploy/agent/process.h"
#include "deploy/agent/worker_launch.h"
#include "deploy/cli/job/job_resolve.h"
#include "deploy/cli/job/job_script.h"
#include "deploy/cli/job/job_values.h"
#include "deploy/cli/run/check_exported_model.h"
#include "deploy/cli/run/data_here.h"
#include "deploy/cli/run/same_run.h"
#include "deploy/cli/script/python_module.h"
#include "deploy/cli/script/script_block.h"
#include "worker/cuda/module_entry.h"
#include "worker/model/model_file.h"
#include "worker/model/weights/initial_weights.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> environment() {
  std::vector<std::string> out;
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry)
    out.emplace_back(*entry);
  return out;
}

Result<std::string> hash_of_initial_weights(const wire::JobSpec& job) {
  ProgressLine line;
  LOCKSTEP_ASSIGN_OR_RETURN(
      const std::string path,
      find_initial_weights(job, [&](const auto&... said) { line.show(said...); }));
  return hash_weight_files(path);
}

// For a module without -m.
std::string hint_of_module(const std::string& file) {
  std::error_code too_long;  // for a name
  if (file.find('.') == std::string::npos || fs::exists(file, too_long)) return {};
  const auto found = find_module(file, fs::current_path(), [](auto&) { return std::string(); });
  return found.is_ok() ? "; a module is named by -m, as in lockstep run -m " + file : "";
}

Result<JobValues> read_job_file(const std::string& file) {
  const auto text = read_file(file, limits::kJobFileBytes);
  if (!text.is_ok()) {
    const Code code = text.status().code() == Code::kInternal ? Code::kUsage : text.status().code();
    return Status(code, (is_script_file(file) ? "script: " : "job file: ") +
                            text.status().message() + hint_of_module(file));
  }
  return parse_job_file(*text, file, fs::absolute(file).lexically_normal().string());
}

// One script would train by the keys of another.
Status check_one_script(const JobRequest& request, const JobValues& values) {
  const JobValue& path = values.at("script.path");
  if (path.origin == request.file) return Status::ok();
  return Status(Code::kUsage, "two scripts, " + request.file + " and script.path (" + path.origin +
                                  "); leave one of the two out");
}

Result<std::string> module_file(const std::string& module, const std::string& folder) {
  return find_module(module, folder,
                     [](const std::string& name) { return imported_from(name, std::getenv); });
}

// A module that is given without its file gets script.path, and a file that is given without a
// module an empty script.module: neither may stay as a lower layer or the stored job has it.
// `folder`: of relative paths.
Status complete_script(const std::string& folder, JobValues& values) {
  const auto path = values.find("script.path");
  const auto module = values.find("script.module");
  if (path != values.end() && module == values.end())
    values["script.module"] = {{""}, path->second.origin, false};
  if (path != values.end() || module == values.end() || module->second.items[0].empty())
    return Status::ok();
  const auto file = module_file(module->second.items[0], folder);
  if (!file.is_ok())
    return file.status().with_context("script.module (" + module->second.origin + ")");
  values["script.path"] = {{*file}, module->second.origin, false};
  return Status::ok();
}

Result<JobValues> read_values(const JobRequest& request) {
  const fs::path here = fs::current_path();
  JobValues values;
  if (!request.file.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(values, read_job_file(request.file));
    LOCKSTEP_RETURN_IF_ERROR(complete_script(fs::absolute(request.file).parent_path(), values));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(JobValues above, parse_job_environment(environment()));
  LOCKSTEP_ASSIGN_OR_RETURN(const JobValues from_command_line,
                            parse_job_overrides(request.overrides));
  overlay(above, from_command_line);
  // Above a script they say as which module it runs.
  if (!is_script_file(request.file)) LOCKSTEP_RETURN_IF_ERROR(complete_script(here, above));
  overlay(values, above);
  if (is_script_file(request.file)) LOCKSTEP_RETURN_IF_ERROR(check_one_script(request, values));
  if (!request.workers.empty()) values["cluster.workers"] = {{request.workers}, "--workers", false};
  if (request.launched_workers > 0)  // keeps what is there
    values.try_emplace(
        "cluster.workers",
        JobValue{{std::to_string(request.launched_workers)}, request.launcher, false});
  return values;
}

// A run would wait for workers that no process starts.
Status check_launched(const JobRequest& request, const wire::JobSpec& job) {
  if (request.launched_workers == 0 || job.cluster().workers() <= request.launched_workers)
    return Status::ok();
  return Status(Code::kUsage, "cluster.workers is " + std::to_string(job.cluster().workers()) +
                                  " but " + request.launcher + " starts " +
                                  std::to_string(request.launched_workers) +
                                  "; start as many, or leave the key out");
}

Status check_mpi(const JobRequest& request, const wire::JobSpec& job) {
  if (job.comm().backend() != "mpi") return Status::ok();
  const auto refused = [](const std::string& why) {
    return Status(Code::kConfig, "comm.backend is mpi, but " + why + "; or take host or auto");
  };
  if (request.launcher != "mpirun")
    return refused(
        "only mpirun makes an MPI world: mpirun --mca orte_allowed_exit_without_sync 1 -np 4 "
        "lockstep agent JOB.yaml --run-dir DIR");
  if (request.mpi_ranks == 0)
    return refused(
        "mpirun would end the whole run with the first worker that dies: start it with --mca "
        "orte_allowed_exit_without_sync 1");
  if (request.mpi_ranks != request.launched_workers)
    return refused(
        "each rank of mpirun is one worker: leave --workers out, and start one rank for each "
        "worker");
  return Status::ok();
}

// The worker computes on a GPU through a module in its directory (worker/cuda/module_entry.h).
Result<uint32_t> usable_gpus() {
  const std::string module = sibling_program(kDeviceModuleLibrary);
  if (!fs::exists(module))
    return Status(Code::kConfig, "this Lockstep was built without its GPU module (there is no " +
                                     module + "; the preset gpu builds it)");
  return count_gpus();
}

Status check_script_file(const std::string& path) {
  std::error_code error;
  const auto type = fs::status(path, error).type();
  if (type == fs::file_type::not_found)
    return Status(Code::kNoInput, "there is no such file; name the script that trains");
  if (type == fs::file_type::directory)
    return Status(Code::kUsage, "that is a directory; name the script in it");
  if (::access(path.c_str(), R_OK) == 0) return Status::ok();
  return Status(Code::kNoInput, "the file cannot be read; check its permissions");
}

// A format that the user has not named must be beyond doubt.
Result<std::string> detect_data(const wire::DataSpec& data, const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::string format,
                            data::detect_format(path, data::column_names(data)));
  const std::string doubt = data::doubt_of(path, format);
  if (!doubt.empty()) return Status(Code::kUsage, doubt);
  return format;
}

}  // namespace

Status split_arguments(const std::vector<std::string>& arguments, JobRequest& request) {
  for (const std::string& argument : arguments) {
    std::error_code too_long;  // for a name
    if (argument.find('=') != std::string::npos && !fs::exists(argument, too_long)) {
      request.overrides.push_back(argument);
    } else if (request.file.empty()) {
      request.file = argument;
    } else if (is_script_file(request.file)) {
      return Status(Code::kUsage, "\"" + argument +
                                      "\" is no override, which is written key=value; " +
                                      "words for the script stand behind --, as in " +
                                      request.file + " -- " + argument);
    } else {
      return Status(Code::kUsage, "two job files, " + request.file + " and " + argument +
                                      "; an override is written key=value");
    }
  }
  // The file of `-m proj.train` has the block of job keys.
  constexpr std::string_view kModule = "script.module=";
  for (const std::string& override : request.overrides) {
    if (!request.file.empty() || !override.starts_with(kModule)) continue;
    LOCKSTEP_ASSIGN_OR_RETURN(request.file,
                              module_file(override.substr(kModule.size()), fs::current_path()));
  }
  return Status::ok();
}

Result<wire::JobSpec> load_job(const JobRequest& request) {
  if (request.file.empty() && request.stored == nullptr)
    return Status(Code::kUsage,
                  "no job file given; try 'lockstep run JOB.yaml' or 'lockstep run SCRIPT.py', and "
                  "'lockstep run --help-job' for its keys");
  LOCKSTEP_ASSIGN_OR_RETURN(const JobValues values, read_values(request));
  JobContext context;
  context.working_directory = fs::current_path().string();
  context.file_directory = request.file.empty() ? context.working_directory
                                                : fs::absolute(request.file).parent_path().string();
  context.cores = usable_cores();
  const bool is_script = is_script_job(values, request.stored);
  context.count_gpus = [&request, is_script]() -> Result<uint32_t> {
    if (request.gpus) return *request.gpus;
    // A script computes with its own torch.
    LOCKSTEP_ASSIGN_OR_RETURN(const uint32_t seen, is_script ? count_gpus() : usable_gpus());
    return seen * request.gpu_views;
  };
  context.sees_gpus_of_all_workers = request.launched_workers <= 1;
  FarData far;
  context.local_path = [&far](const wire::DataSpec& data, const std::string& path) {
    return far.local_path(data, path);
  };
  context.has_eval_files = [](const wire::DataSpec& data, const std::string& path) {
    return data::has_eval_files(path, data::column_names(data));
  };
  context.detect_format = detect_data;
  context.hash_model_file = hash_model_file;
  context.hash_initial_weights = hash_of_initial_weights;
  context.check_script = check_script_file;
  context.hash_tokenizer = data::vocabulary_sha256;
  context.stored = request.stored;
  context.check_same_run = check_same_run;
  auto job = resolve_job(values, context);
  if (!job.is_ok()) return job;
  LOCKSTEP_RETURN_IF_ERROR(check_launched(request, *job));
  LOCKSTEP_RETURN_IF_ERROR(check_exported_model(*job));
  LOCKSTEP_RETURN_IF_ERROR(check_mpi(request, *job));
  if (!job->comm().tls().empty())
    LOCKSTEP_RETURN_IF_ERROR(rpc::TlsContext::load(job->comm().tls()).status());
  return job;
}

}  // namespace lockstep
