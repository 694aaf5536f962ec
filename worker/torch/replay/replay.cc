#include "worker/torch/replay/replay.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "comm/base/check.h"
#include "comm/base/exact_number.h"
#include "comm/collectives/loopback/loopback.h"
#include "comm/run/checkpoint/numerics.h"
#include "comm/run/checkpoint/weights_hash.h"
#include "comm/run/job/loss_kind.h"
#include "comm/run/job/predictions.h"
#include "data/open/job_sample_cut.h"
#include "data/view/run_data.h"
#include "worker/engine/flat_layout.h"
#include "worker/engine/parameter_groups.h"
#include "worker/optim/loss_scale.h"
#include "worker/replay/source.h"
#include "worker/torch/model/model.h"
#include "worker/torch/replay/batch_file.h"
#include "worker/torch/replay/slot_look.h"

namespace lockstep {
namespace {

class Replay {
 public:
  explicit Replay(const ReplayRequest& request) : request_(request) {}

  Result<ReplayReport> run();

 private:
  Status open();
  Status load_base();
  Status install(const ListedCheckpoint& base);
  void compare_machines(const Manifest& manifest);
  Status begin_generation(SkipSet skips);
  void tell_what_is_no_part_of_the_run();
  Status tell_the_loss_scale();
  Status compute_step(const coordinator::StepEntry& recorded);
  Status compare(const wire::StepRecord& record, const coordinator::StepEntry& recorded);
  Status look();
  void take_gradients();

  const ReplayRequest& request_;
  ReplayReport report_;
  std::unique_ptr<ReplaySource> source_;
  std::unique_ptr<data::Dataset> dataset_;
  std::unique_ptr<Model> model_;  // for its layout; the engine has its own
  std::unique_ptr<Engine> engine_;
  std::vector<std::unique_ptr<Collective>> collectives_;  // one; outlived by no use of the engine
};

Status Replay::open() {
  if (request_.step == 0) return {Code::kUsage, "steps are counted from 1"};
  LOCKSTEP_ASSIGN_OR_RETURN(source_, ReplaySource::open(request_.run_dir, request_.step - 1));
  const wire::JobSpec& job = source_->job();
  if (is_script(job.model()))
    return {
        Code::kUsage,
        "the run trains a script, whose steps only the script computes; `lockstep replay` starts "
        "it"};
  if (job.cluster().device() == "cuda") {
    return {Code::kConfig,
            "the run was trained on GPUs, but replay computes on the CPU, which gives other bits"};
  }
  const std::string cache = data::cache_directory(job.data(), request_.run_dir);
  LOCKSTEP_ASSIGN_OR_RETURN(dataset_, data::open_train_data(job, cache));
  if (dataset_->fingerprint() != source_->order().spec.fingerprint) {
    return {Code::kBadData, "the data in " + job.data().train().path() +
                                " are not those that the run was trained with (fingerprint " +
                                dataset_->fingerprint() + " now, " +
                                source_->order().spec.fingerprint + " then)"};
  }
  if (request_.slot && *request_.slot >= job.train().slots()) {
    return {Code::kUsage, "the run has " + std::to_string(job.train().slots()) +
                              " slots, counted from 0; there is no slot " +
                              std::to_string(*request_.slot)};
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      model_, make_model(job.model(), dataset_->shape(),
                         outputs_of(job.train(), dataset_->shape(), dataset_->classes())));
  const auto make_buffer = [](const BufferLayout& layout, uint32_t regions) {
    return Result<std::unique_ptr<GradientBuffer>>(make_plain_buffer(layout, regions));
  };
  LOCKSTEP_ASSIGN_OR_RETURN(
      engine_, Engine::create(job, *dataset_, nullptr, job.train().slots(), make_buffer));
  return Status::ok();
}

Status Replay::install(const ListedCheckpoint& base) {
  LOCKSTEP_ASSIGN_OR_RETURN(const LoadedState loaded, read_checkpoint(base.path));
  return engine_->install_state(loaded.state.tensors(), base.info.manifest.resume.step)
      .with_context(base.path);
}

// The newest checkpoint that is whole; a damaged one costs time, not the answer.
Status Replay::load_base() {
  for (const ListedCheckpoint& base : source_->bases()) {
    Status status = base.status;
    if (status.is_ok()) status = install(base);
    if (status.is_ok()) {
      report_.base = base.info.name;
      compare_machines(base.info.manifest);
      return status;
    }
    if (status.code() != Code::kBadData && status.code() != Code::kNoInput) return status;
    report_.notes.push_back("skipped checkpoint " + base.path + ": " + status.message());
  }
  return engine_->start_afresh();
}

void Replay::compare_machines(const Manifest& manifest) {
  const std::string differs =
      numerics_difference(engine_->fingerprint(), manifest.numerics_fingerprint);
  if (!differs.empty())
    report_.notes.push_back("this machine may compute other bits than the run did: " + differs);
}

// Steps and slots that are no part of the run; replay still looks at their samples.
void Replay::tell_what_is_no_part_of_the_run() {
  if (const Step first = source_->undone_from(); first <= source_->step()) {
    report_.notes.push_back(
        "steps " + std::to_string(first + 1) + " to " + std::to_string(request_.step) +
        " are no longer part of the run; replay compares them with what was reported of them");
  }
  for (const coordinator::SkipEntry& skip : source_->skips_of_step()) {
    report_.notes.push_back("slots [" + std::to_string(skip.slots.begin) + ", " +
                            std::to_string(skip.slots.end) +
                            ") of this step are left out in every generation after " +
                            std::to_string(skip.generation) + ": " + skip.reason);
  }
}

// The report shows gradients as they were summed, since these sums can have overflowed.
Status Replay::tell_the_loss_scale() {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<StateTensor> state, engine_->state());
  for (const StateTensor& tensor : state) {
    if (tensor.name != kLossScaleName) continue;
    float scale = 0;
    std::memcpy(&scale, tensor.data, sizeof scale);
    report_.notes.push_back("gradients are shown multiplied by the loss scale of this step, " +
                            exact_text(static_cast<double>(scale)));
  }
  return Status::ok();
}

Status Replay::begin_generation(SkipSet skips) {
  GradientBuffer& buffer = engine_->gradient_buffer();
  collectives_ = make_loopback(1, {&buffer});
  GenerationView view;
  view.generation = 1;
  view.collective = collectives_.front().get();
  view.slot_runs = {{0, source_->job().train().slots()}};
  view.bucket_bounds = {0, buffer.layout().elements};
  view.total_steps = source_->total_steps();
  view.skips = std::move(skips);
  const RunShape& shape = source_->order().shape;
  const bool has_gradients = view.skips.counted_samples(plan_step(shape, source_->step()),
                                                        source_->step(), shape.slots) > 0;
  StepGate gate;
  gate.try_enter = [this, has_gradients] {
    if (engine_->applied_steps() == source_->step() && has_gradients) take_gradients();
    return true;
  };
  return engine_->begin_generation(view, std::move(gate));
}

// All slots' gradients are summed and nothing is applied yet.
void Replay::take_gradients() {
  const wire::JobSpec& job = source_->job();
  const auto groups = resolve_groups(model_->layout(), job.optimizer());
  LOCKSTEP_CHECK(groups.is_ok(), "the engine resolved the same groups");
  const FlatLayout layout = make_flat_layout(model_->layout(), job.train().slots(), groups->frozen);
  const float* sums = collectives_.front()->reduced();
  for (size_t i = 0; i < layout.parameters.size(); ++i) {
    if (!layout.is_trained(i)) continue;
    TensorStats& stats = report_.gradients.emplace_back();
    stats.name = model_->layout().parameters[i].name;
    stats.add(sums + layout.parameters[i].begin, layout.parameters[i].elements);
  }
}

Status Replay::compare(const wire::StepRecord& record, const coordinator::StepEntry& recorded) {
  const auto differs = [&](const std::string& what, const std::string& now,
                           const std::string& then) {
    report_.differences.push_back(what + " of step " + std::to_string(record.step() + 1) + " is " +
                                  now + " here and was " + then + " in the run");
  };
  if (!same_bits(record.lr(), recorded.lr)) {
    differs("the learning rate", exact_text(record.lr()), exact_text(recorded.lr));
  }
  if (!same_bits(record.loss(), recorded.loss)) {
    differs("the loss", exact_text(record.loss()), exact_text(recorded.loss));
  }
  if (record.skipped() != recorded.skipped) {
    differs("whether the loss scaler skipped it", record.skipped() ? "yes" : "no",
            recorded.skipped ? "yes" : "no");
  }
  const CheckpointInfo* checkpoint = source_->checkpoint_of(record.step() + 1);
  if (checkpoint == nullptr) return Status::ok();
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<StateTensor> state, engine_->state());
  const std::string hash = weights_hash(state, false);
  if (hash == checkpoint->manifest.weights_sha256) {
    report_.same_weights.push_back(checkpoint->name);
  } else {
    differs("the hash of the weights", hash, checkpoint->manifest.weights_sha256);
  }
  return Status::ok();
}

Status Replay::compute_step(const coordinator::StepEntry& recorded) {
  if (recorded.step == source_->step()) {
    LOCKSTEP_RETURN_IF_ERROR(tell_the_loss_scale());
    LOCKSTEP_RETURN_IF_ERROR(look());
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const StepOutcome outcome, engine_->step());
  LOCKSTEP_RETURN_IF_ERROR(compare(outcome.record, recorded));
  if (recorded.step == source_->step() && outcome.record.skipped()) {
    report_.notes.push_back(outcome.record.loss() == 0 && model_->layout().has_weights()
                                ? "this step was skipped: none of its samples has any weight"
                                : "the loss scaler skipped this step: its gradients overflowed");
  }
  report_.loss = outcome.record.loss();
  report_.recorded = recorded;
  return Status::ok();
}

Status Replay::look() {
  const wire::JobSpec& job = source_->job();
  SlotLook slots(job, *dataset_, model_->layout(), *engine_, source_->step());
  LookedAt seen;
  for (uint32_t slot = 0; slot < job.train().slots(); ++slot) {
    if (request_.slot && *request_.slot != slot) continue;
    LOCKSTEP_RETURN_IF_ERROR(slots.look(slot, &seen));
  }
  report_.batch_file =
      request_.batch_file.empty()
          ? request_.run_dir + "/replay-step-" + std::to_string(request_.step) + ".safetensors"
          : request_.batch_file;
  LOCKSTEP_RETURN_IF_ERROR(
      write_batch(report_.batch_file, seen, dataset_->shape(),
                  outputs_of(job.train(), dataset_->shape(), dataset_->classes())));
  report_.activations = std::move(seen.activations);
  report_.samples = std::move(seen.samples);
  // A loss that is no number is the worst.
  std::stable_sort(report_.samples.begin(), report_.samples.end(),
                   [](const ReplayedSample& a, const ReplayedSample& b) {
                     if (std::isnan(a.loss) || std::isnan(b.loss)) {
                       return std::isnan(a.loss) && !std::isnan(b.loss);
                     }
                     return a.loss > b.loss;
                   });
  for (ReplayedSample& sample : report_.samples) sample.where = dataset_->name_of(sample.sample);
  return Status::ok();
}

Result<ReplayReport> Replay::run() {
  LOCKSTEP_RETURN_IF_ERROR(open());
  LOCKSTEP_RETURN_IF_ERROR(load_base());
  if (source_->job().comm().numerics() != "exact") {
    report_.notes.push_back("comm.numerics is not exact: sums may differ in their last bits");
  }
  report_.step = request_.step;
  report_.first = engine_->applied_steps() + 1;
  report_.epoch = plan_step(source_->order().shape, source_->step()).epoch;
  LOCKSTEP_ASSIGN_OR_RETURN(const auto recorded, source_->recorded(engine_->applied_steps()));
  tell_what_is_no_part_of_the_run();
  LOCKSTEP_RETURN_IF_ERROR(begin_generation(source_->skips_in(recorded)));
  Status status;
  for (const coordinator::StepEntry& step : recorded) {
    status = compute_step(step);
    if (!status.is_ok()) break;
  }
  if (!status.is_ok()) collectives_.front()->abort();
  engine_->end_generation();
  if (!status.is_ok()) return status;
  LOCKSTEP_ASSIGN_OR_RETURN(report_.slot_map, source_->slot_map(report_.recorded.generation));
  return std::move(report_);
}

}  // namespace

Result<ReplayReport> replay(const ReplayRequest& request) {
  return Replay(request).run();
}

}  // namespace lockstep
