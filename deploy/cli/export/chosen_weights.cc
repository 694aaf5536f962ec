#include "deploy/cli/export/chosen_weights.h"

#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "comm/base/file.h"
#include "comm/run/checkpoint/store.h"
#include "comm/run/job/metric_names.h"
#include "deploy/cli/export/stored_tensors.h"
#include "worker/optim/prune.h"

namespace lockstep {

Status write_chosen_weights(const std::string& checkpoint, const WeightChoice& choice,
                            const std::string& directory) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      const WeightFiles weights,
      WeightFiles::open(checkpoint + "/" + std::string(kModelFile), WeightSource::kRun));
  std::optional<WeightFiles> optimizer;
  std::map<std::string, const FileTensor*> averages;
  if (choice.is_average) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        optimizer,
        WeightFiles::open(checkpoint + "/" + std::string(kOptimizerFile), WeightSource::kRun));
    const std::string prefix = std::string(kAverageName) + ".";
    for (const FileTensor& tensor : optimizer->tensors())
      if (tensor.name.starts_with(prefix)) averages[tensor.name.substr(prefix.size())] = &tensor;
    if (averages.empty())
      return {Code::kUsage,
              "--ema: the run keeps no average of its weights; train.ema: 0.999 is the key for it"};
  }
  std::vector<StateTensor> out;
  std::deque<std::vector<float>> pruned;
  for (const FileTensor& tensor : weights.tensors()) {
    const auto average = averages.find(tensor.name);
    LOCKSTEP_ASSIGN_OR_RETURN(
        StateTensor chosen, state_tensor_of(average == averages.end() ? tensor : *average->second));
    chosen.name = tensor.name;
    if (choice.pruned > 0 && chosen.dtype == DType::kF32 && can_be_pruned(chosen.shape.size())) {
      std::vector<float>& copy = pruned.emplace_back(chosen.bytes / sizeof(float));
      std::memcpy(copy.data(), chosen.data, chosen.bytes);
      prune_smallest(copy.data(), copy.size(), choice.pruned);
      chosen.data = reinterpret_cast<std::byte*>(copy.data());
    }
    out.push_back(std::move(chosen));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, safetensors_text(out, weights.metadata()));
  LOCKSTEP_RETURN_IF_ERROR(weights.unchanged());
  if (optimizer) LOCKSTEP_RETURN_IF_ERROR(optimizer->unchanged());
  return replace_file(directory + "/" + std::string(kModelFile), text);
}

}  // namespace lockstep
