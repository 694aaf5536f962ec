#include "worker/script/script_data.h"

#include <utility>

#include "comm/base/check.h"
#include "data/base/quiet_signals.h"
#include "data/dataset/facts.h"
#include "data/loader/batch_memory.h"
#include "data/loader/cut_padding.h"
#include "data/loader/job_loader.h"
#include "data/loader/job_order.h"

namespace lockstep {
namespace {

struct EvalBatch {
  data::BatchMemory memory;
  data::Batch batch;  // in that memory
};

}  // namespace

Result<std::unique_ptr<ScriptData>> ScriptData::open(const wire::JobSpec& job, uint32_t turns,
                                                     std::string cache, EvalData eval) {
  const data::QuietSignals quiet;  // for the threads that fetch remote data
  data::RunData data;
  if (eval == EvalData::kOpen) {
    LOCKSTEP_ASSIGN_OR_RETURN(data, data::open_run_data(job, cache));
    if (data.eval == nullptr)
      return Status(Code::kUsage,
                    "the job names no evaluation data; name some with data.eval.path, or hold some "
                    "out with data.holdout");
  } else {
    LOCKSTEP_ASSIGN_OR_RETURN(data.train, data::open_train_data(job, cache));
  }
  return std::unique_ptr<ScriptData>(new ScriptData(job, turns, std::move(cache), std::move(data)));
}

ScriptData::ScriptData(const wire::JobSpec& job, uint32_t turns, std::string cache,
                       data::RunData data)
    : job_(job),
      turns_(turns),
      cache_(std::move(cache)),
      train_(std::move(data.train)),
      eval_(std::move(data.eval)),
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

// Its threads stay for all batches of all evaluations.
Status ScriptData::start_eval() {
  if (eval_team_ != nullptr) return Status::ok();
  const data::QuietSignals quiet;
  const auto& words = job_.data().transforms();
  LOCKSTEP_ASSIGN_OR_RETURN(
      data::SampleReader reader,
      data::SampleReader::create(*eval_, {words.begin(), words.end()}, train_->statistics()));
  LOCKSTEP_ASSIGN_OR_RETURN(
      eval_team_,
      data::SampleTeam::start(data::job_decode_threads(job_, *eval_), data::Augmenter()));
  eval_reader_.emplace(std::move(reader));
  return Status::ok();
}

Result<ScriptData::BatchRef> ScriptData::read_eval(uint64_t begin, uint64_t end) {
  if (begin >= end || end > eval_->samples())
    return Status(Code::kInternal, "an evaluation batch lies outside of its data");
  LOCKSTEP_RETURN_IF_ERROR(start_eval());
  const data::SampleReader& reader = *eval_reader_;
  const uint64_t samples = end - begin;
  const auto read = std::make_shared<EvalBatch>();
  data::SampleShape shape = reader.shape();
  LOCKSTEP_ASSIGN_OR_RETURN(read->memory,
                            data::BatchMemory::make(1, samples, reader.input_bytes(),
                                                    shape.label_words() * sizeof(int64_t)));
  std::byte* const inputs = read->memory.inputs(0);
  int64_t* const labels = read->memory.labels(0);
  LOCKSTEP_RETURN_IF_ERROR(eval_team_->read_range(reader, begin, end, inputs, labels));
  data::cut_padding(*eval_, begin, end, inputs, labels, &shape);
  data::Batch& batch = read->batch;
  batch.samples = static_cast<uint32_t>(samples);
  const bool are_ids = shape.is_sequence() || shape.has_ids();
  batch.tokens = are_ids ? reinterpret_cast<const int64_t*>(inputs) : nullptr;
  batch.images = are_ids ? nullptr : reinterpret_cast<const float*>(inputs);
  batch.labels = labels;
  batch.shape = std::move(shape);
  return BatchRef(read, &read->batch);
}

void ScriptData::note_tuning() {
  if (tuning_is_noted_ || tuning_ == nullptr || !tuning_->is_done()) return;
  tuning_is_noted_ = true;
  if (note_) note_(tuning_->result()->text());
}

}  // namespace lockstep
