#include "worker/process/read_weights.h"

#include "comm/base/file.h"
#include "comm/run/checkpoint/store.h"
#include "comm/run/directory/layout.h"
#include "worker/model/weights/load_weights.h"

namespace lockstep {

Status read_weights(const wire::JobSpec& job, const std::string& run_dir, Engine& engine,
                    Logger& logger) {
  if (job.model().init().empty()) return Status::ok();
  const auto checkpoints = list_checkpoints(rundir::file_in(run_dir, rundir::kCheckpoints));
  if (checkpoints.is_ok() && !checkpoints->empty()) return Status::ok();
  LOCKSTEP_RETURN_IF_ERROR(engine.start_afresh());
  const WeightTable* table = engine.initial_weights();
  if (table == nullptr) return Status::ok();
  const std::string path = rundir::log_in(run_dir, "model-init.txt");
  logger.info("weights_read", "started from " + job.model().init() + ": " + table->summary(),
              {{"path", job.model().init()}, {"table", path}});
  return replace_file(path, table->text());
}

}  // namespace lockstep
