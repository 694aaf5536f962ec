// Writing one checkpoint: all files under the temporary name, the manifest last, one rename.
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <map>

#include "comm/base/file.h"
#include "comm/base/hash.h"
#include "comm/run/checkpoint/safetensors.h"
#include "comm/run/checkpoint/store.h"
#include "comm/run/checkpoint/weights_hash.h"
#include "comm/run/job/data_legend.h"

namespace lockstep {
namespace {

std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// Writes one safetensors file and returns what the manifest says of it.
Result<ManifestFile> write_tensors(FileOps& files, const std::string& dir, const std::string& name,
                                   std::span<const StateTensor> tensors,
                                   std::map<std::string, std::string> metadata) {
  metadata["format"] = "pt";
  LOCKSTEP_ASSIGN_OR_RETURN(const SafetensorsPlan plan, plan_safetensors(tensors, metadata));
  LOCKSTEP_ASSIGN_OR_RETURN(auto out, files.create(dir + "/" + name));
  Sha256 hash;
  hash.update(plan.prefix);
  LOCKSTEP_RETURN_IF_ERROR(out->append(as_bytes(plan.prefix)));
  for (const StateTensor* tensor : plan.order) {
    hash.update(tensor->data, tensor->bytes);
    LOCKSTEP_RETURN_IF_ERROR(out->append({tensor->data, tensor->bytes}));
  }
  LOCKSTEP_RETURN_IF_ERROR(out->finish());
  return ManifestFile{name, plan.file_bytes, to_hex(hash.finish())};
}

Status write_all(FileOps& files, const std::string& dir, std::span<const StateTensor> state,
                 Manifest& manifest) {
  std::vector<StateTensor> weights;
  std::vector<StateTensor> optimizer;
  for (const StateTensor& tensor : state)
    (tensor.section == StateSection::kOptimizer ? optimizer : weights).push_back(tensor);
  LOCKSTEP_RETURN_IF_ERROR(files.make_directory(dir));
  LOCKSTEP_ASSIGN_OR_RETURN(ManifestFile model, write_tensors(files, dir, kModelFile, weights,
                                                              legend_metadata(manifest.legend)));
  manifest.files.push_back(std::move(model));
  if (!optimizer.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(ManifestFile rest,
                              write_tensors(files, dir, kOptimizerFile, optimizer, {}));
    manifest.files.push_back(std::move(rest));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(auto out, files.create(dir + "/" + kManifestName));
  LOCKSTEP_RETURN_IF_ERROR(out->append(as_bytes(manifest_to_json(manifest))));
  LOCKSTEP_RETURN_IF_ERROR(out->finish());
  return files.sync_directory(dir);
}

}  // namespace

Result<CheckpointInfo> write_checkpoint(FileOps& files, const std::string& dir,
                                        std::span<const StateTensor> state, Manifest manifest) {
  const std::string name = checkpoint_name(name_of(manifest));
  const std::string path = dir + "/" + name;
  const std::string temporary = dir + "/tmp-" + name;
  manifest.files.clear();
  WeightsHashes hashes = weights_hashes(state);
  manifest.weights_sha256 = std::move(hashes.weights);
  manifest.state_sha256 = std::move(hashes.state);

  struct stat there;
  if (::stat(path.c_str(), &there) == 0) {
    auto old = verify_checkpoint(path);
    if (!old.is_ok())
      return Status(Code::kInternal, "checkpoint " + path + " exists already and cannot be used (" +
                                         old.status().message() + "); move it away");
    if (old->manifest.state_sha256 == manifest.state_sha256) return old;
    return Status(Code::kInternal,
                  "checkpoint " + path + " exists already and holds another state; move it away");
  }
  if (::mkdir(dir.c_str(), 0755) != 0 && errno != EEXIST)
    return Status(Code::kInternal, "cannot create " + dir + ": " + errno_text(errno));

  Status status = files.remove_directory(temporary);
  if (status.is_ok()) status = write_all(files, temporary, state, manifest);
  if (status.is_ok()) status = files.rename(temporary, path);
  if (!status.is_ok()) {
    // K3. If even this fails the next writer's remove_leftovers() does it.
    (void)files.remove_directory(temporary);
    return status.with_context("checkpoint " + name + " was not written");
  }
  LOCKSTEP_RETURN_IF_ERROR(files.sync_directory(dir).with_context("checkpoint " + name));
  return read_checkpoint_info(path);
}

}  // namespace lockstep
