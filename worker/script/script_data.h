// The training data that a script's job names (data.train.path), and their batches: opened, ordered
// and loaded as for the models of Lockstep's own. And its evaluation data, if the script evaluates
// on them.
//
// Errors: from open_run_data(), Loader and SampleTeam.
//
// Thread-safety: open(), load() and read_eval() on any one thread, before a generation or in one;
// next() and the generation on the training thread. A batch may be let go on any thread.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "comm/run/job/job.pb.h"
#include "comm/run/plan/epoch_order.h"
#include "comm/run/plan/step_plan.h"
#include "comm/wire/control.pb.h"
#include "data/dataset/dataset.h"
#include "data/loader/batch.h"
#include "data/loader/loader.h"
#include "data/loader/loader_tuning.h"
#include "data/loader/sample_reader.h"
#include "data/loader/sample_team.h"
#include "data/view/run_data.h"
#include "worker/engine/generation_view.h"

namespace lockstep {

enum class EvalData { kLeave, kOpen };

class ScriptData {
 public:
  using BatchRef = std::shared_ptr<const data::Batch>;

  // `job` outlives the object. `turns`: of a batch. `cache`: where inflated files and indexes are
  // kept. kUsage if evaluation data are to be opened and the job names none.
  static Result<std::unique_ptr<ScriptData>> open(const wire::JobSpec& job, uint32_t turns,
                                                  std::string cache,
                                                  EvalData eval = EvalData::kLeave);

  const data::Dataset& train() const { return *train_; }
  const data::Dataset* eval() const { return eval_.get(); }  // null: not open
  const std::string& cache() const { return cache_; }
  RunShape shape() const;
  OrderSpec order() const;
  wire::DataFacts facts() const;

  // From here on next() gives the batches of this rank's slots, from `first` on.
  Status begin_generation(const GenerationView& view, Step first);
  void end_generation();

  // REQUIRES: in a generation, its next slot that has samples.
  Result<BatchRef> next(Step step, uint32_t slot);
  // The batch of any slot that has samples, apart from the batches that the generation loads.
  Result<BatchRef> load(Step step, uint32_t slot) const;
  // Samples [begin, end) of the evaluation data, in their own order. kInternal if there are no such
  // samples. REQUIRES: eval().
  Result<BatchRef> read_eval(uint64_t begin, uint64_t end);

 private:
  ScriptData(const wire::JobSpec& job, uint32_t turns, std::string cache, data::RunData data);
  data::LoaderOptions loader_options() const;
  void note_tuning();
  Status start_eval();

  const wire::JobSpec& job_;
  const uint32_t turns_;
  const std::string cache_;
  const std::unique_ptr<data::Dataset> train_;
  const std::unique_ptr<data::Dataset> eval_;
  std::optional<data::SampleReader> eval_reader_;  // both since the first read_eval()
  std::unique_ptr<data::SampleTeam> eval_team_;
  const std::unique_ptr<data::LoaderTuning> tuning_;  // over all generations; null: off
  bool tuning_is_noted_ = false;
  std::function<void(const std::string&)> note_;  // of the generation
  std::unique_ptr<data::Loader> loader_;          // of the generation
};

}  // namespace lockstep
