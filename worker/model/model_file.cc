#include "worker/model/model_file.h"

#include <filesystem>
#include <utility>

#include "comm/base/file.h"
#include "comm/base/hash.h"
#include "comm/base/limits.h"

namespace lockstep {

Result<ModelFile> read_model_file(const std::string& path, const ModelFileKeys& keys) {
  const std::string what = std::string(keys.path) + " names " + path;
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    return Status(Code::kConfig, what + ", which is a directory; name the model's file");
  auto content = read_file(path, limits::kModelFileBytes);
  if (content.status().code() == Code::kNoInput)
    return Status(Code::kNoInput,
                  what + ", which is not there; give a path that exists on every worker's machine");
  if (!content.is_ok())
    return Status(Code::kConfig, what + ", which cannot be read: " + content.status().message() +
                                     "; it must be a file that every worker may read");
  std::string hash = to_hex(sha256(*content));
  return ModelFile{std::move(content).value(), std::move(hash)};
}

Result<std::string> hash_model_file(const std::string& path, const ModelFileKeys& keys) {
  LOCKSTEP_ASSIGN_OR_RETURN(ModelFile file, read_model_file(path, keys));
  return std::move(file.sha256);
}

Status check_model_hash(const std::string& path, const std::string& wanted,
                        const std::string& found, const ModelFileKeys& keys) {
  if (wanted == found) return Status::ok();
  return {Code::kUsage, std::string(keys.path) + " names " + path +
                            ", whose content has changed: its SHA-256 is " + found + ", and " +
                            keys.sha256 + " of this run is " + wanted +
                            ". Put the file back as it was, or start a new run in another "
                            "--run-dir"};
}

}  // namespace lockstep
