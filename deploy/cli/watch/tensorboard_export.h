// Keeps RUN_DIR/tensorboard equal to the run's history: loss and learning rate of every step from
// history.jsonl, evaluations from evals.jsonl, speed from the coordinator or the journal.
//
// Beyond kWholeSteps the export writes the means of every hundred steps, from history-thin.jsonl
// (thin_history.h), and the last steps of a run that is over.
//
// If the run went back to a checkpoint, a new file begins with a session start at the first step,
// for which TensorBoard drops what it knew, and the export writes everything again.
//
// The history has no wall times. The export reckons a step's time back from the newest step, at the
// mean pace of the run.
//
// Thread-safety: one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "comm/base/status.h"
#include "coordinator/journal/thin_history.h"
#include "deploy/cli/watch/run_source.h"
#include "metrics/files/event_file.h"

namespace lockstep {

class TensorboardExport {
 public:
  static constexpr uint64_t kWholeSteps = 100'000;  // the export writes each of these

  // Removes the files of an earlier export, and nothing else. `source` outlives the object.
  static Result<TensorboardExport> begin(RunSource& source);

  // Adds what came since the last call. kNoInput while the run has no history.
  Status update();

  const std::string& directory() const { return directory_; }
  uint64_t steps() const { return steps_; }  // written so far

 private:
  TensorboardExport(RunSource& source, std::string directory)
      : source_(&source), directory_(std::move(directory)) {}
  Status open_file(bool is_again);
  Status add_steps();
  Status add_whole_steps(const std::string& path, uint64_t last);
  Status add_thin_steps(const std::string& history);
  void add_point(const nlohmann::json& line);
  Status add_line(const std::string& line, bool* is_cut);
  Status add_curves();
  Status add_evaluations();
  void add_metrics(const nlohmann::json& line, const std::string& prefix, uint64_t step);
  Status add_old_evaluations();
  double wall_of(uint64_t step) const;

  RunSource* source_;
  std::string directory_;
  std::unique_ptr<EventFile> file_;
  uint64_t files_ = 0;
  int64_t offset_ = 0;  // in the history, after the last line that was written
  uint64_t steps_ = 0;
  coordinator::ThinMark thin_;  // the last line of history-thin.jsonl that was read
  uint64_t speed_step_ = 0;     // newest point of the speed that was written
  uint64_t eval_step_ = 0;
  double newest_wall_s_ = 0;  // when the history last grew,
  double newest_step_ = 0;    // up to here,
  double step_wall_s_ = 0;    // at this pace
};

}  // namespace lockstep
