// What resolving a job must know of the machine, the shell and the run that is resumed.
//
// Thread-safety: a value.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "comm/base/status.h"
#include "comm/wire/job.pb.h"

namespace lockstep {

struct JobContext {
  std::string file_directory = ".";     // absolute: of the job file
  std::string working_directory = ".";  // absolute: of the shell
  uint32_t cores = 1;
  // How many GPUs workers can use here; kConfig with the reason: none.
  std::function<Result<uint32_t>()> count_gpus = [] {
    return Result<uint32_t>(Status(Code::kConfig, "no GPU was looked for"));
  };
  // Where data that the job says are far away stand here; others where they are.
  std::function<Result<std::string>(const wire::DataSpec& data, const std::string& path)>
      local_path = [](auto&, const std::string& path) { return Result<std::string>(path); };
  // Whether a directory holds the files of an evaluation set.
  std::function<bool(const std::string& directory)> has_eval_files = [](auto&) { return false; };
  // What the files of a path are, for `auto` (data::detect_format).
  std::function<Result<std::string>(const std::string& path)> detect_format = [](auto&) {
    return Result<std::string>("idx");
  };
  // SHA-256 of a model's file, in hex (worker/model/model_file.h).
  std::function<Result<std::string>(const std::string& path)> hash_model_file = [](auto&) {
    return Result<std::string>("");
  };
  // SHA-256 of a vocabulary's files, in hex (data/bpe/vocabulary.h).
  std::function<Result<std::string>(const std::string& path)> hash_tokenizer = [](auto&) {
    return Result<std::string>("");
  };
  // The run that is resumed: its values stand where nothing else was said.
  const wire::JobSpec* stored = nullptr;
  // An error where the job asked for is not the one that is resumed (same_run.h).
  std::function<Status(const wire::JobSpec& stored, const wire::JobSpec& wanted)> check_same_run =
      [](auto&, auto&) { return Status::ok(); };
};

// Default of train.eval_batch where a sample is a sequence of tokens.
inline constexpr uint32_t kSequenceEvalBatch = 4;

}  // namespace lockstep
