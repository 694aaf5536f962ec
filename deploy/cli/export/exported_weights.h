// The weights of a checkpoint with the names and the layout of the library that will load them:
//
//   gpt2                Hugging Face's GPT2LMHeadModel: names begin with `transformer.`, matrices
//                       of linear layers lie (in, out)
//   all others          the names of the checkpoint, which the model has in PyTorch, too
//                       (torchvision's for resnet18 and resnet50)
//
// Thread-safety: values.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "comm/run/checkpoint/state_tensor.h"
#include "worker/model/weights/weight_files.h"

namespace lockstep {

class ExportedWeights {
 public:
  // `path`: model.safetensors of a checkpoint. Errors of WeightFiles::open(); kBadData for tensors
  // that no checkpoint has.
  static Result<ExportedWeights> of(const std::string& model, const std::string& path);

  // In the checkpoint's names.
  const FileTensor* find(const std::string& name) const;
  // A file in memory, with the metadata {"format": "pt"} that Hugging Face's readers want.
  Result<std::string> safetensors() const;
  // The same with matrices, kernels and embeddings in 8 bits: NAME of I8, and its NAME_scale
  // (worker/model/weights/dequantize.h). Errors of to_int8(); kConfig if there is nothing to make
  // smaller.
  Result<std::string> int8_safetensors(uint32_t* tensors_in_int8) const;

 private:
  explicit ExportedWeights(WeightFiles files) : files_(std::move(files)) {}
  Status add(const std::string& model, const FileTensor& tensor);

  WeightFiles files_;
  std::deque<std::vector<float>> turned_;  // content of tensors that lie otherwise
  std::vector<StateTensor> tensors_;
  std::set<std::string> turned_names_;
};

}  // namespace lockstep
