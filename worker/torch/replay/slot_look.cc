#include "worker/torch/replay/slot_look.h"

#include <ATen/core/Tensor.h>

#include <algorithm>

#include "comm/base/check.h"
#include "comm/base/labels.h"
#include "comm/run/job/loss_kind.h"
#include "data/loader/job_loader.h"
#include "data/loader/job_order.h"
#include "worker/engine/loss.h"
#include "worker/torch/model/model.h"

namespace lockstep {
namespace {

TensorStats& stats_of(std::vector<TensorStats>& all, const std::string& name) {
  const auto it = std::find_if(all.begin(), all.end(),
                               [&](const TensorStats& stats) { return stats.name == name; });
  if (it != all.end()) return *it;
  all.emplace_back().name = name;
  return all.back();
}

// "conv1" of "conv1.weight".
std::string layer_of(const std::string& parameter) {
  return parameter.substr(0, parameter.rfind('.'));
}

// Keeps statistics of all layers, and the output in floats.
class Keeper final : public ForwardObserver {
 public:
  Keeper(const ModelLayout& layout, LookedAt& out) : layout_(layout), out_(out) {}

  void layer(uint32_t parameter, const at::Tensor& output) override {
    const at::Tensor values = output.to(at::kFloat).contiguous();
    stats_of(out_.activations, layer_of(layout_.parameters[parameter].name))
        .add(values.const_data_ptr<float>(), static_cast<uint64_t>(values.numel()));
  }
  void output(const ModelOutput& output) override {
    if (output.logits.defined()) output_.logits = output.logits.to(at::kFloat).contiguous();
    if (output.losses.defined()) output_.losses = output.losses.to(at::kFloat).contiguous();
  }
  const ModelOutput& output() const { return output_; }

 private:
  const ModelLayout& layout_;
  LookedAt& out_;
  ModelOutput output_;
};

}  // namespace

SlotLook::SlotLook(const wire::JobSpec& job, const data::Dataset& dataset, const ModelLayout& model,
                   Engine& engine, Step step)
    : job_(job),
      dataset_(dataset),
      model_(model),
      engine_(engine),
      step_(step),
      shape_{data::epoch_units(dataset), job.train().global_batch(), job.train().slots()} {}

Result<std::unique_ptr<data::Loader>> SlotLook::load(uint32_t slot) const {
  data::LoaderOptions options = data::job_loader_options(job_, dataset_);
  options.first_step = step_;
  options.end_step = step_ + 1;
  options.slots = {slot, slot + 1};
  return data::Loader::start(dataset_, options);
}

Status SlotLook::look(uint32_t slot, LookedAt* out) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto loader, load(slot));
  LOCKSTEP_ASSIGN_OR_RETURN(const data::Batch* batch, loader->next());
  if (batch == nullptr) return Status::ok();  // an empty slot of a short step
  LOCKSTEP_CHECK(batch->step == step_, "the batch is of the step to look into");
  if (batch->images != nullptr) {
    stats_of(out->activations, "input")
        .add(batch->images, batch->samples * batch->shape.elements());
  }
  Keeper keeper(model_, *out);
  LOCKSTEP_RETURN_IF_ERROR(engine_.look(*batch, keeper));
  keep(*batch, keeper.output(), out);
  return Status::ok();
}

namespace {

void keep_fields(const data::Batch& batch, LookedAt* out) {
  if (batch.shape.fields == nullptr) return;
  const data::FieldList& fields = *batch.shape.fields;
  out->fields.resize(fields.specs().size());
  const auto* record = reinterpret_cast<const std::byte*>(batch.labels + uint64_t{batch.samples} *
                                                                             batch.shape.labels());
  for (uint64_t i = 0; i < batch.samples; ++i, record += fields.record_bytes())
    for (size_t f = 0; f < fields.specs().size(); ++f) {
      const std::byte* const from = record + fields.offset(f);
      out->fields[f].insert(out->fields[f].end(), from, from + fields.specs()[f].bytes());
    }
}

}  // namespace

void SlotLook::keep(const data::Batch& batch, const ModelOutput& output, LookedAt* out) {
  const StepPlan plan = plan_step(shape_, step_);
  const EpochOrder order(data::job_order(job_, dataset_), plan.epoch);
  const uint64_t begin = slot_positions(plan, batch.slot, shape_.slots).begin;
  const uint64_t classes = outputs_of(job_.train(), dataset_.shape(), dataset_.classes());
  const uint64_t each = batch.shape.labels();
  const bool is_by_sample = output.losses.defined();
  const auto* losses = is_by_sample ? output.losses.const_data_ptr<float>() : nullptr;
  // (B, classes) or (B, T, classes); null if the model gives losses
  const auto* rows = output.logits.defined() ? output.logits.const_data_ptr<float>() : nullptr;
  const SlotValues values{.label_share = batch.shares.label,
                          .label_smoothing = static_cast<float>(job_.train().label_smoothing())};
  for (uint64_t i = 0; i < batch.samples; ++i) {
    SlotLoss loss;
    uint64_t counted = 0;
    for (uint64_t row = i * each; !is_by_sample && row < (i + 1) * each; ++row) {
      if (batch.labels[row] != kIgnoredLabel) ++counted;
      loss.add(softmax_cross_entropy(rows + row * classes,
                                     target_of(batch.labels, row, batch.samples * each, values),
                                     classes, 1, nullptr));
    }
    const uint64_t other = mixed_with(i, batch.samples);
    out->samples.push_back(
        {.slot = batch.slot,
         .position = begin + i,
         .sample = order.at(begin + i),
         .label = batch.labels[i * each],
         .share = values.label_share,
         .other = order.at(begin + other),
         .other_label = batch.labels[other * each],
         .loss = is_by_sample ? losses[i]
                              : static_cast<float>(loss.sum / static_cast<double>(counted))});
  }
  out->are_mixed |= values.label_share < 1;
  if (batch.shape.is_sequence()) {
    // With the padding that the batch left out: other slots have other widths.
    const uint64_t padding = dataset_.shape().tokens - each;
    for (uint64_t i = 0; i < batch.samples; ++i) {
      const int64_t* const tokens = batch.tokens + i * batch.shape.elements();
      const int64_t* const labels = batch.labels + i * each;
      out->tokens.insert(out->tokens.end(), tokens, tokens + each);
      out->tokens.insert(out->tokens.end(), padding, 0);
      out->labels.insert(out->labels.end(), labels, labels + each);
      out->labels.insert(out->labels.end(), padding, kIgnoredLabel);
    }
    return;
  }
  out->labels.insert(out->labels.end(), batch.labels, batch.labels + batch.samples);
  const uint64_t elements = batch.samples * batch.shape.elements();
  if (rows != nullptr) out->logits.insert(out->logits.end(), rows, rows + batch.samples * classes);
  if (batch.shape.has_ids())
    out->tokens.insert(out->tokens.end(), batch.tokens, batch.tokens + elements);
  else
    out->images.insert(out->images.end(), batch.images, batch.images + elements);
  keep_fields(batch, out);
}

}  // namespace lockstep
