// Where the tensors of a script lie in the flat gradient buffer, and the memory from which its
// optimizer applies a step.
//
// After the digests, the control section (flat_layout.h) has
//
//   [used: 1 a slot whose gradient had the parameter, by parameter][count, high][count, low]
//   [ends: 1 a slot whose body has ended the run]
//
// so that the sums say which parameters any slot of the step used (None and zeros are not the same
// to an optimizer), the count of all slots (high * 4096 + low, each exact in a float up to 2^24),
// and whether all slots end the run, whichever ranks have them.
//
// Thread-safety: values; the memory belongs to the thread that has the desk's turn (desk.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "comm/run/checkpoint/state_tensor.h"
#include "worker/engine/flat_layout.h"
#include "worker/engine/loss_facts.h"

namespace lockstep {

// The facts that the trial has found out about the script.
struct ScriptFacts {
  struct Tensor {
    std::string name;
    std::vector<int64_t> shape;
    bool is_late = false;  // ls_tensor
  };
  std::vector<Tensor> parameters;  // trained, in registration order
  std::vector<Tensor> statistics;  // floats that slots change
  std::vector<std::string> metrics;
  std::vector<uint32_t> metric_turns = {};  // LossFacts
  bool has_counts = false;
};

class ScriptLayout {
 public:
  // kUsage for metrics that a record does not hold, or no parameter at all; kConfig for shapes
  // without a size, and where there is no memory.
  static Result<ScriptLayout> create(ScriptFacts facts, uint32_t slots);

  const ScriptFacts& facts() const { return facts_; }
  const FlatLayout& flat() const { return flat_; }
  LossFacts loss() const;

  bool has_late() const { return has_late_; }  // a parameter that is_late

  uint64_t used_at(size_t parameter) const { return own_ + parameter; }  // in a control section
  uint64_t count_at() const { return own_ + facts_.parameters.size(); }

  uint64_t ends_at() const { return count_at() + 2; }

  // The count of a slot, in its control section, and the sum over slots.
  void put_count(float* control, uint64_t count) const;
  double get_count(const float* control) const;

  // Memory for a whole region of the gradient buffer. Its gradients are gradients(). A run of one
  // process may sum there, and a Collective may put its sums there: no peer reads it.
  float* room() { return gradients_.data(); }

  // The sums of a step for the optimizer, times `factor`; statistics are means over `slots` slots.
  // Sums in room() stay where they are.
  void take_sums(const float* sums, uint32_t slots, float factor);
  // What the sums of a control section say of used().
  void take_used(const float* control);

  const std::vector<float>& gradients() const { return gradients_; }
  const std::vector<float>& statistics() const { return statistics_; }
  const std::vector<float>& used() const { return used_; }
  const std::vector<uint64_t>& parameter_begins() const { return parameter_begins_; }
  const std::vector<uint64_t>& statistic_begins() const { return statistic_begins_; }

 private:
  ScriptLayout() = default;

  ScriptFacts facts_;
  FlatLayout flat_;
  uint64_t own_ = 0;
  bool has_late_ = false;
  std::vector<float> gradients_;
  std::vector<float> statistics_;
  std::vector<float> used_;
  std::vector<uint64_t> parameter_begins_;
  std::vector<uint64_t> statistic_begins_;  // in statistics_
};

}  // namespace lockstep
