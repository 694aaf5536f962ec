// The whole file of a model that the user brings (model.path).
//
// Lockstep reads the content before anything looks at it. The hash of the content is part of the
// run's identity: all workers, and all resumes, compute with the same file or not at all.
//
// Errors, each with the file and what to do: kNoInput if there is no file at the path, kConfig if
// the path cannot be read or is not a file.
//
// Thread-safety: free functions.
#pragma once

#include <string>

#include "comm/base/status.h"

namespace lockstep {

struct ModelFile {
  std::string content;
  std::string sha256;  // in hex
};

// The keys of a job that name a file and its hash, for messages.
struct ModelFileKeys {
  const char* path;
  const char* sha256;
};
inline constexpr ModelFileKeys kModelFileKeys{"model.path", "model.sha256"};
inline constexpr ModelFileKeys kEvalFileKeys{"model.eval_path", "model.eval_sha256"};
inline constexpr ModelFileKeys kPredictFileKeys{"model.predict_path", ""};  // of no run's identity

Result<ModelFile> read_model_file(const std::string& path,
                                  const ModelFileKeys& keys = kModelFileKeys);

// Its hash alone.
Result<std::string> hash_model_file(const std::string& path,
                                    const ModelFileKeys& keys = kModelFileKeys);

// Ok if `found`, the hash of the file at `path`, equals `wanted`, the hash of the run. kUsage if
// not. Both in hex.
Status check_model_hash(const std::string& path, const std::string& wanted,
                        const std::string& found, const ModelFileKeys& keys = kModelFileKeys);

}  // namespace lockstep
