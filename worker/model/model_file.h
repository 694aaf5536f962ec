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

// `key`: the job key that names the file.
Result<ModelFile> read_model_file(const std::string& path, const std::string& key = "model.path");

// Ok if `found`, the hash of the file at `path`, equals `wanted`, the hash of the run. kUsage if
// not. Both in hex. `key` and `hash_key`: the job keys of file and hash.
Status check_model_hash(const std::string& path, const std::string& wanted,
                        const std::string& found, const std::string& key = "model.path",
                        const std::string& hash_key = "model.sha256");

}  // namespace lockstep
