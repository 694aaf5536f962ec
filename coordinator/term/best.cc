#include "coordinator/term/best.h"

#include <algorithm>

#include "comm/base/clock.h"
#include "comm/run/checkpoint/store.h"
#include "comm/run/directory/claim.h"
#include "comm/run/directory/layout.h"
#include "coordinator/journal/journal_sqlite.h"
#include "coordinator/state/evaluations.h"
#include "coordinator/term/begin.h"

namespace lockstep::coordinator {

Result<WayBack> go_back_to_best(const std::string& run_dir, const wire::JobSpec& job) {
  const std::string path = journal_path(run_dir);
  if (!keeps_best(job.checkpoint().best()))
    return Status(
        Code::kUsage,
        "--from-checkpoint best: checkpoint.best is none, so nobody has said what is best; "
        "give checkpoint.best=loss or checkpoint.best=accuracy");
  const Status whole = check_journal(run_dir, path, false, JournalCheck::kOpenPart);
  if (whole.code() == Code::kBadData)
    return whole.with_context(
        "--from-checkpoint best: which checkpoint is the best is lost with the journal; name one");
  LOCKSTEP_RETURN_IF_ERROR(whole);
  LOCKSTEP_ASSIGN_OR_RETURN(const auto journal,
                            open_sqlite_journal(path, {.check = JournalCheck::kNone}));
  LOCKSTEP_ASSIGN_OR_RETURN(const JournalContents contents, journal->load());
  EvalEntries evals;
  for (const EvalEntry& eval : contents.evals) evals[eval.step] = eval;
  const BestBy by = best_by(job.checkpoint().best());
  const CheckpointEntry* way_back = way_to_best(contents.checkpoints, evals, by, kNoStep);
  const CheckpointEntry* best =
      way_back != nullptr ? way_back : best_checkpoint(contents.checkpoints, evals, by, kNoStep);
  if (best == nullptr)
    return Status(Code::kUsage, "--from-checkpoint best: no checkpoint of " + run_dir +
                                    " was evaluated yet; resume without it");
  const Step wanted = best_evaluation(evals, by, kNoStep).step;
  const WayBack way{best->name, way_back == nullptr || best->step == wanted ? 0 : wanted};
  LOCKSTEP_RETURN_IF_ERROR(
      verify_checkpoint(rundir::file_in(run_dir, rundir::kCheckpoints) + "/" + best->name)
          .status());
  const RollbackEntry back{
      {best->step, Phase::kTrain}, best->name, "resumed from the best checkpoint"};
  const auto is_later = [best](const CheckpointEntry& entry) {
    return entry.state == CheckpointState::kComplete && entry.step > best->step;
  };
  const bool is_newest =
      std::none_of(contents.checkpoints.begin(), contents.checkpoints.end(), is_later);
  if (is_newest && cut_ledger(contents.ledger, back.to).empty()) return way;
  const std::vector<JournalEntry> entries{
      back,
      EventEntry{contents.last_generation, "rolled_back",
                 "the run goes back to step " + std::to_string(best->step) +
                     (way.lost == 0 ? ", its best checkpoint " : ", checkpoint ") + best->name}};
  LOCKSTEP_RETURN_IF_ERROR(journal->commit(entries, SystemClock().both()));
  return way;
}

}  // namespace lockstep::coordinator
