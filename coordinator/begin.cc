#include "coordinator/begin.h"

#include <google/protobuf/util/json_util.h>
#include <unistd.h>

#include "comm/base/file.h"
#include "coordinator/identity.h"
#include "coordinator/journal_sqlite.h"
#include "coordinator/resume.h"

namespace lockstep::coordinator {
namespace {

std::string json_of(const wire::JobSpec& job) {
  std::string text;
  // A JobSpec has no field that JSON cannot say.
  (void)google::protobuf::util::MessageToJsonString(job, &text);
  return text;
}

// Everyone reads the resolved job, so that the number of slots is one number.
Status store_slots(const std::string& run_dir, wire::JobSpec& job, uint32_t slots) {
  if (job.train().slots() == slots) return Status::ok();
  job.mutable_train()->set_slots(slots);
  return replace_file(run_dir + "/job.pb", job.SerializeAsString());
}

Status check_shape(const Options& options) {
  if (options.shape.slots > options.shape.global_batch) {
    return {Code::kUsage, "train.slots is " + std::to_string(options.shape.slots) +
                              ", more than the " + std::to_string(options.shape.global_batch) +
                              " samples of train.global_batch: a slot would never have a sample"};
  }
  if (options.total_steps == 0) {
    return {Code::kUsage, "train.epochs and train.max_steps are both 0: the run has no length"};
  }
  return Status::ok();
}

void fill_beginning(const JournalContents& contents, const ResumePlan& plan, Beginning* beginning) {
  beginning->base = plan.point;
  beginning->base_checkpoint = plan.path;
  for (const EvalEntry& eval : contents.evals) {
    if (eval.step <= plan.point.step) beginning->evals[eval.step] = eval;
  }
  for (const CheckpointEntry& entry : contents.checkpoints) {
    if (entry.state == CheckpointState::kDropped) continue;
    const bool survives =
        entry.state == CheckpointState::kComplete && entry.step <= plan.point.step;
    CheckpointEntry copy = entry;
    if (!survives) copy.state = CheckpointState::kRolledBack;
    (survives ? beginning->checkpoints : beginning->stray).push_back(std::move(copy));
  }
}

Status open_history(Begun& begun, const std::string& run_dir, Step keep) {
  LOCKSTEP_ASSIGN_OR_RETURN(begun.history, History::open(run_dir + "/history.jsonl", keep));
  Status status =
      begun.journal->visit_steps(begun.history->lines(), keep, [&](const StepEntry& step) {
        if (step.step == begun.history->lines()) begun.history->append(step);
      });
  if (!status.is_ok()) return status;
  return begun.history->flush();
}

}  // namespace

Result<Begun> begin_run(const std::string& run_dir, bool resume, const Clock& clock,
                        Logger& logger) {
  Begun begun;
  LOCKSTEP_ASSIGN_OR_RETURN(RunInputs inputs, read_inputs(run_dir));
  begun.token = inputs.token;
  LOCKSTEP_ASSIGN_OR_RETURN(begun.journal, open_sqlite_journal(run_dir + "/journal.db"));
  LOCKSTEP_ASSIGN_OR_RETURN(JournalContents contents, begun.journal->load());
  if (!contents.identity.empty() && !resume) {
    return Status(Code::kUsage, run_dir +
                                    " holds a run already: add --resume to go on with it, or "
                                    "choose another --run-dir");
  }
  const uint32_t slots = resolve_slots(inputs.job, contents.identity);
  wire::JobSpec job = inputs.job;
  job.mutable_train()->set_slots(slots);
  begun.options = make_options(job, inputs.facts, run_dir);
  LOCKSTEP_RETURN_IF_ERROR(check_shape(begun.options));
  if (!contents.identity.empty()) {
    LOCKSTEP_RETURN_IF_ERROR(check_identity(contents.identity, begun.options.identity));
  }
  LOCKSTEP_RETURN_IF_ERROR(store_slots(run_dir, inputs.job, slots));

  LOCKSTEP_ASSIGN_OR_RETURN(ResumePlan plan, plan_resume(run_dir + "/checkpoints", *begun.journal,
                                                         contents, begun.options, logger));
  std::vector<JournalEntry> entries = plan.entries;
  entries.insert(entries.end(), plan.recovered.begin(), plan.recovered.end());
  begun.beginning.term = contents.last_term + 1;
  entries.push_back(
      TermEntry{begun.beginning.term, static_cast<uint32_t>(::getpid()), json_of(job)});
  LOCKSTEP_RETURN_IF_ERROR(begun.journal->commit(entries, clock.wall_ms()));

  LOCKSTEP_ASSIGN_OR_RETURN(contents, begun.journal->load());
  begun.beginning.run_id = job.job();
  begun.beginning.next_member = contents.last_member + 1;
  begun.beginning.generation = contents.last_generation;
  begun.beginning.is_identity_stored = !contents.identity.empty();
  fill_beginning(contents, plan, &begun.beginning);
  LOCKSTEP_RETURN_IF_ERROR(open_history(begun, run_dir, plan.point.step));
  if (resume) {
    logger.info("resume",
                plan.path.empty() ? "nothing to resume from: starts from the beginning"
                                  : "goes on from " + plan.path,
                {{"step", plan.point.step}, {"term", begun.beginning.term}});
  }
  return begun;
}

}  // namespace lockstep::coordinator
