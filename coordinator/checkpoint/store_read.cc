// Fills a state from a checkpoint, front to back. Reads and hashes each byte once: the hash of a
// file covers its header and its tensors, so the weights' own hash would find nothing more.
#include <map>

#include "coordinator/checkpoint/store.h"
#include "coordinator/checkpoint/store_file.h"

namespace lockstep {
namespace {

std::string describe(DType dtype, std::span<const int64_t> shape) {
  return std::string(dtype_safetensors_name(dtype)) + safetensors::shape_text(shape);
}

// The tensors of `state` that belong into one file, by name; each may be taken once.
class Expected {
 public:
  Expected(std::span<const StateTensor> state, bool optimizer) {
    for (const StateTensor& tensor : state)
      if ((tensor.section == StateSection::kOptimizer) == optimizer) left_[tensor.name] = &tensor;
  }

  Result<std::span<std::byte>> take(const SafetensorsEntry& entry) {
    const auto it = left_.find(entry.name);
    if (it == left_.end())
      return Status(Code::kBadData, "tensor '" + entry.name + "' does not belong to this model");
    const StateTensor& tensor = *it->second;
    if (tensor.dtype != entry.dtype || tensor.shape != entry.shape)
      return Status(Code::kBadData, "tensor '" + entry.name + "' is " +
                                        describe(entry.dtype, entry.shape) +
                                        " in the checkpoint, but " +
                                        describe(tensor.dtype, tensor.shape) + " in the model");
    left_.erase(it);
    return std::span(tensor.data, tensor.bytes);
  }

  Status all_taken(const std::string& path) const {
    if (left_.empty()) return Status::ok();
    return Status(Code::kBadData, "checkpoint " + path + " lacks tensor '" + left_.begin()->first +
                                      "' and " + std::to_string(left_.size() - 1) + " others");
  }

 private:
  std::map<std::string, const StateTensor*> left_;
};

Status read_tensors(const std::string& path, const ManifestFile& listed, Expected& expected) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto file, CheckpointFile::open(path, listed));
  for (const SafetensorsEntry& entry : file->header().tensors) {
    auto out = expected.take(entry);
    if (!out.is_ok()) return out.status().with_context(path);
    LOCKSTEP_RETURN_IF_ERROR(file->read(*out));
  }
  return file->check_hash();
}

}  // namespace

Result<CheckpointInfo> load_checkpoint(const std::string& path,
                                       std::span<const StateTensor> state) {
  LOCKSTEP_ASSIGN_OR_RETURN(CheckpointInfo info, read_checkpoint_info(path));
  for (const std::string name : {kModelFile, kOptimizerFile}) {
    Expected expected(state, name == kOptimizerFile);
    for (const ManifestFile& file : info.manifest.files)
      if (file.name == name)
        LOCKSTEP_RETURN_IF_ERROR(read_tensors(path + "/" + file.name, file, expected));
    LOCKSTEP_RETURN_IF_ERROR(expected.all_taken(path));
  }
  return info;
}

}  // namespace lockstep
