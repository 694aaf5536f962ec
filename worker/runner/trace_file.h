// The file of a traced worker: RUN_DIR/trace/rank-N.json. N is the worker's rank at the end of the
// last traced step, or of its generation. A later worker of the same rank overwrites the file.
//
// Thread-safety: the training thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "comm/base/clock.h"
#include "comm/base/log.h"
#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"
#include "metrics/files/trace_log.h"

namespace lockstep {

class TraceFile {
 public:
  // Off unless train.trace names steps. `logger` outlives the object.
  TraceFile(const wire::JobSpec& job, const std::string& run_dir, Logger& logger);

  // Where events go; null: off.
  TraceLog* log() const { return log_.get(); }

  // Writes the file when `applied` steps are the whole window. Errors are logged:
  // a trace never ends a run.
  void step_applied(Step applied, uint32_t rank);
  // Writes the events so far, unless the file is written.
  void generation_ended(uint32_t rank);

 private:
  Status write(uint32_t rank) const;

  const std::string directory_;
  Logger& logger_;
  SystemClock clock_;
  std::unique_ptr<TraceLog> log_;
  bool is_written_ = false;
};

}  // namespace lockstep
