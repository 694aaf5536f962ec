#include "worker/torch/model/examination.h"

#include <ATen/ops/full_like.h>

#include <functional>
#include <utility>

#include "worker/torch/model/foreign.h"

namespace lockstep {
namespace {

// Counts that a result may depend on: by a threshold or a number (primes), or by a period. A
// multiple of many periods is seen by forwards that read the counter before they count, and after.
constexpr int64_t kMultiple = int64_t{1024} * 27 * 125 * 7 * 11 * 13;
constexpr int64_t kOtherCounts[] = {1, 2, 3, 7, 13, 97, 997, 1'000, 10'007};

constexpr char kNoCounts[] =
    ": every slot of a step would see another count; give batch norms a momentum, and keep "
    "counters "
    "that change the output out of training";

Status refuse(const std::string& what) {
  return {Code::kConfig, what};
}

class Examination {
 public:
  Examination(ExaminedModel& model, const ExaminedBatches& batches)
      : model_(model), batches_(batches) {
    for (size_t i = 0; i < model.tensors(); ++i)
      initial_.push_back(model.is_trained(i) ? model.get(i) : model.get(i).detach());
  }

  Result<TensorKinds> run() {
    LOCKSTEP_RETURN_IF_ERROR(watch_a_step());
    LOCKSTEP_RETURN_IF_ERROR(check_counters());
    if (batches_.has_one) try_one_sample();
    for (size_t i = 0; i < initial_.size(); ++i)
      if (!model_.is_trained(i)) model_.set(i, initial_[i]);
    return std::move(kinds_);
  }

 private:
  Status watch_a_step();
  Status sort(size_t tensor);
  Status check_counters();
  Status try_counts(const std::function<int64_t(int64_t)>& other);
  void try_one_sample();

  std::string place_of_write(size_t tensor) const {
    const std::string writer = model_.writer_of(tensor);
    return " in forward" + (writer.empty() ? "" : ", in " + writer);
  }

  // The model's own tensors stay as the file has them; forward gets copies.
  void reset() {
    for (size_t i = 0; i < initial_.size(); ++i)
      if (!model_.is_trained(i)) model_.set(i, initial_[i].clone());
  }

  ExaminedModel& model_;
  const ExaminedBatches batches_;
  std::vector<at::Tensor> initial_;
  TensorKinds kinds_;
  std::vector<at::Tensor> statistics_;  // after a step, by index of kinds_.statistics
  at::Tensor output_;                   // of that step
};

Status Examination::watch_a_step() {
  reset();
  std::vector<std::pair<at::Tensor, uint32_t>> before;
  for (size_t i = 0; i < initial_.size(); ++i)
    before.emplace_back(model_.get(i), model_.get(i)._version());
  output_ = model_.train(batches_.first);
  for (size_t i = 0; i < initial_.size(); ++i) {
    const at::Tensor now = model_.get(i);
    const bool is_touched = !now.is_same(before[i].first) || now._version() != before[i].second;
    if (model_.is_trained(i)) {
      if (is_touched)
        return refuse("changes its parameter " + model_.name(i) + place_of_write(i) +
                      "; only the optimizer may do that");
      kinds_.parameters.push_back(i);
    } else if (!is_touched && same_bits(now, initial_[i])) {
      // A batch norm changes its statistics without counting it as a version.
      kinds_.constants.push_back(i);
    } else {
      LOCKSTEP_RETURN_IF_ERROR(sort(i));
    }
  }
  return Status::ok();
}

// Sorts a tensor that a step has changed.
Status Examination::sort(size_t tensor) {
  const at::Tensor now = model_.get(tensor);
  const at::Tensor& then = initial_[tensor];
  if (now.scalar_type() == at::kFloat && then.scalar_type() == at::kFloat &&
      now.sizes() == then.sizes() && then.numel() > 0) {
    kinds_.statistics.push_back(tensor);
    statistics_.push_back(now.detach().clone());
    return Status::ok();
  }
  if (now.scalar_type() == at::kLong && then.scalar_type() == at::kLong && now.numel() == 1 &&
      then.numel() == 1 && now.item<int64_t>() == then.item<int64_t>() + 1) {
    kinds_.counters.push_back(tensor);
    return Status::ok();
  }
  return refuse("changes its buffer " + model_.name(tensor) + " of type " + type_of(then) +
                place_of_write(tensor) +
                "; only float32 statistics of one shape may change, and int64 counters of steps");
}

// A counter is the same on every rank after a step, not within it: nothing may depend on it.
Status Examination::check_counters() {
  bool is_unseen = false;
  for (const size_t i : kinds_.counters) {
    const auto reader = model_.reader_of(i);
    is_unseen = is_unseen || !reader;
    if (reader && !reader->empty())
      return refuse("computes with its counter " + model_.name(i) + " in " + *reader + kNoCounts);
  }
  if (!is_unseen) return Status::ok();
  for (const int64_t more : kOtherCounts)
    LOCKSTEP_RETURN_IF_ERROR(try_counts([more](int64_t count) { return count + more; }));
  for (const int64_t count : {kMultiple, kMultiple - 1})
    LOCKSTEP_RETURN_IF_ERROR(try_counts([count](int64_t) { return count; }));
  return Status::ok();
}

// `other`: a count in place of the file's.
Status Examination::try_counts(const std::function<int64_t(int64_t)>& other) {
  reset();
  for (const size_t i : kinds_.counters)
    model_.set(i, at::full_like(initial_[i], other(initial_[i].item<int64_t>())));
  bool is_same = same_bits(model_.train(batches_.first), output_);
  for (size_t i = 0; i < statistics_.size(); ++i)
    is_same = is_same && same_bits(model_.get(kinds_.statistics[i]), statistics_[i]);
  if (is_same) return Status::ok();
  return refuse("gives other values when its counter " + model_.name(kinds_.counters[0]) +
                " changes" + kNoCounts);
}

// PyTorch's batch norms refuse a single value a channel; then the engine must keep such slots away.
void Examination::try_one_sample() {
  reset();
  try {
    model_.train(1);
  } catch (const std::exception& error) {
    kinds_.one_sample_error = one_line(error);
  }
}

}  // namespace

Result<TensorKinds> examine(ExaminedModel& model, const ExaminedBatches& batches) {
  return Examination(model, batches).run();
}

std::shared_ptr<const float> values_of(const at::Tensor& t) {
  const auto owner = std::make_shared<at::Tensor>(t.detach().contiguous());
  return {owner, owner->const_data_ptr<float>()};
}

std::string type_of(const at::Tensor& t) {
  return c10::toString(t.scalar_type());
}

const char* safetensors_type(at::ScalarType type) {
  switch (type) {
    case at::kByte:
      return "U8";
    case at::kChar:
      return "I8";
    case at::kShort:
      return "I16";
    case at::kInt:
      return "I32";
    case at::kLong:
      return "I64";
    case at::kHalf:
      return "F16";
    case at::kFloat:
      return "F32";
    case at::kDouble:
      return "F64";
    case at::kBool:
      return "BOOL";
    case at::kBFloat16:
      return "BF16";
    default:
      return nullptr;
  }
}

}  // namespace lockstep
