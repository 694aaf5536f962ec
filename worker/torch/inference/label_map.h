// Maps a label of the data to the model's class of the same name.
//
// Thread-safety: immutable.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "worker/torch/inference/use_words.h"

namespace lockstep {

class LabelMap {
 public:
  // kBadData for data with a class that the model does not know.
  static Result<LabelMap> make(const ModelAndData& opened);

  // kBadData for a label that is no class of the model. Labels that are numbers stay as they are.
  Status apply(std::span<int64_t> labels) const;

 private:
  std::string data_;         // their name, for messages
  uint32_t classes_ = 0;     // 0: any label is right
  std::vector<int64_t> to_;  // by label of the data; empty: as they are
};

}  // namespace lockstep
