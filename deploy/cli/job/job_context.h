// Tells resolve_job() about the machine, the shell and the run to resume.
//
// Thread-safety: a value.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"
#include "worker/model/model_file.h"

namespace lockstep {

struct JobContext {
  std::string file_directory = ".";     // absolute; the job file lies there
  std::string working_directory = ".";  // absolute; of the shell
  uint32_t cores = 1;
  // Number of GPUs that workers can use here; kConfig with the reason if there is none.
  std::function<Result<uint32_t>()> count_gpus = [] {
    return Result<uint32_t>(Status(Code::kConfig, "no GPU was looked for"));
  };
  // False where a launcher starts ranks that may each see other GPUs, on this machine or another:
  // then their number here says nothing, and the coordinator compares GPUs when workers register.
  bool sees_gpus_of_all_workers = true;
  // Local path of remote data, fetched if need be; other paths as they are.
  std::function<Result<std::string>(const wire::DataSpec& data, const std::string& path)>
      local_path = [](auto&, const std::string& path) { return Result<std::string>(path); };
  // True if a directory holds the files of an evaluation set.
  std::function<bool(const wire::DataSpec& data, const std::string& directory)> has_eval_files =
      [](auto&, auto&) { return false; };
  // Format of the files at a path, for `auto` (data::detect_format).
  std::function<Result<std::string>(const wire::DataSpec& data, const std::string& path)>
      detect_format = [](auto&, auto&) { return Result<std::string>("idx"); };
  // SHA-256 of a model's file, in hex; `keys` name it in the job.
  std::function<Result<std::string>(const std::string& path, const ModelFileKeys& keys)>
      hash_model_file = [](auto&, auto&) { return Result<std::string>(""); };
  // SHA-256 of the weights of model.init, in hex (worker/model/weights/weight_files.h).
  std::function<Result<std::string>(const wire::JobSpec& job)> hash_initial_weights = [](auto&) {
    return Result<std::string>("");
  };
  // An error unless a script can be read there.
  std::function<Status(const std::string& path)> check_script = [](auto&) { return Status::ok(); };
  // SHA-256 of a vocabulary's files, in hex (data/bpe/vocabulary.h).
  std::function<Result<std::string>(const std::string& path)> hash_tokenizer = [](auto&) {
    return Result<std::string>("");
  };
  // The job of the run to resume, whose values hold unless the user gives others; null: a new run.
  const wire::JobSpec* stored = nullptr;
  // An error unless `wanted` continues the run (same_run.h).
  std::function<Status(const wire::JobSpec& stored, const wire::JobSpec& wanted)> check_same_run =
      [](auto&, auto&) { return Status::ok(); };
};

// Default of train.eval_batch if a sample is a sequence of tokens.
inline constexpr uint32_t kSequenceEvalBatch = 4;

}  // namespace lockstep
