// The file of a model that the user brings (model.path), as a whole.
//
// The content is read before anything looks at it, and its hash is part of the run's identity: all
// workers, and all resumes, compute with the same file or not at all.
//
// Errors, each with the file and what to do: kNoInput when it is not there, kConfig when it cannot
// be read or is no file.
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

Result<ModelFile> read_model_file(const std::string& path);

// `path` has the content that the run was begun with: `wanted`, in hex. kUsage where it has not.
Status check_model_hash(const std::string& path, const std::string& wanted,
                        const std::string& found);

}  // namespace lockstep
