#include "deploy/cli/watch/best_checkpoint.h"

#include <nlohmann/json.hpp>

#include "deploy/cli/watch/run_source.h"

namespace lockstep {

Result<BestCheckpoint> find_best_checkpoint(const std::string& run_dir) {
  LOCKSTEP_ASSIGN_OR_RETURN(RunSource source, RunSource::open(run_dir));
  LOCKSTEP_ASSIGN_OR_RETURN(const nlohmann::json status, source.get_json("status", "members=1"));
  const auto found = status.find("best_checkpoint");
  if (found == status.end() || !found->is_object() || !found->contains("name"))
    return Status(Code::kUsage,
                  "the run in " + run_dir +
                      " has no best checkpoint: checkpoint.best is none, or nothing was "
                      "evaluated yet");
  BestCheckpoint best;
  best.name = found->value("name", std::string());
  best.step = found->value("step", uint64_t{0});
  if (const auto share = found->find("accuracy"); share != found->end() && share->is_number())
    best.accuracy = share->get<double>();
  if (const auto loss = found->find("loss"); loss != found->end() && loss->is_number())
    best.loss = loss->get<double>();
  return best;
}

}  // namespace lockstep
