#include "worker/script/script_data.h"

#include <utility>

#include "comm/base/check.h"
#include "data/base/quiet_signals.h"
#include "data/dataset/facts.h"
#include "data/loader/job_loader.h"
#include "data/loader/job_order.h"
#include "data/view/run_data.h"

namespace lockstep {

Result<std::unique_ptr<ScriptData>> ScriptData::open(const wire::JobSpec& job, uint32_t turns,
                                                     std::string cache) {
  const data::QuietSignals quiet;  // for the threads that fetch what is far away
  LOCKSTEP_ASSIGN_OR_RETURN(auto train, data::open_train_data(job, cache));
  return std::unique_ptr<ScriptData>(
      new ScriptData(job, turns, std::move(cache), std::move(train)));
}

ScriptData::ScriptData(const wire::JobSpec& job, uint32_t turns, std::string cache,
                       std::unique_ptr<data::Dataset> train)
    : job_(job),
      turns_(turns),
      cache_(std::move(cache)),
      train_(std::move(train)),
      tuning_(data::make_job_tuning(job, *train_)) {}

data::LoaderOptions ScriptData::loader_options() const {
  data::LoaderOptions options = data::job_loader_options(job_, *train_);
  options.shape.turns = turns_;
  return options;
}

RunShape ScriptData::shape() const {
  return loader_options().shape;
}

OrderSpec ScriptData::order() const {
  return data::job_order(job_, *train_);
}

wire::DataFacts ScriptData::facts() const {
  return data::make_data_facts(*train_, nullptr);
}

Status ScriptData::begin_generation(const GenerationView& view, Step first) {
  end_generation();
  note_ = view.note;
  data::LoaderOptions options = loader_options();
  options.first_step = first;
  options.end_step = view.total_steps;
  options.slots = view.slot_runs[view.collective->rank()];
  options.skips = view.skips;
  options.in_hand = view.in_hand;
  options.prefetch = view.prefetch;
  options.tuning = tuning_.get();
  LOCKSTEP_ASSIGN_OR_RETURN(loader_, data::Loader::start(*train_, options));
  return Status::ok();
}

void ScriptData::end_generation() {
  loader_.reset();
}

Result<ScriptData::BatchRef> ScriptData::next(Step step, uint32_t slot) {
  if (loader_ == nullptr) return Status(Code::kInternal, "a batch was asked for in no generation");
  LOCKSTEP_ASSIGN_OR_RETURN(BatchRef batch, loader_->take());
  LOCKSTEP_CHECK(batch != nullptr && batch->step == step && batch->slot == slot,
                 "the loader is at another step than the engine");
  note_tuning();
  return batch;
}

Result<ScriptData::BatchRef> ScriptData::load(Step step, uint32_t slot) const {
  data::LoaderOptions options = loader_options();
  options.first_step = step;
  options.end_step = step + 1;
  options.slots = {slot, slot + 1};
  options.prefetch_batches = 1;
  LOCKSTEP_ASSIGN_OR_RETURN(const auto loader, data::Loader::start(*train_, options));
  LOCKSTEP_ASSIGN_OR_RETURN(BatchRef batch, loader->take());
  LOCKSTEP_CHECK(batch != nullptr, "the slot has samples");
  return batch;
}

void ScriptData::note_tuning() {
  if (tuning_is_noted_ || tuning_ == nullptr || !tuning_->is_done()) return;
  tuning_is_noted_ = true;
  if (note_) note_(tuning_->result()->text());
}

}  // namespace lockstep
