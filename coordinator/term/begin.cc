#include "coordinator/term/begin.h"

#include <google/protobuf/util/json_util.h>
#include <unistd.h>

#include "comm/run/directory/layout.h"
#include "comm/run/directory/run_files.h"
#include "comm/run/job/predictions.h"
#include "coordinator/journal/journal_sqlite.h"
#include "coordinator/term/lineage.h"

namespace lockstep::coordinator {
namespace {

// All processes read the resolved job, so that they have one number of slots and one global batch.
Status store_job(const std::string& run_dir, const wire::JobSpec& given, const wire::JobSpec& job) {
  if (given.train().slots() == job.train().slots() &&
      given.train().global_batch() == job.train().global_batch())
    return Status::ok();
  return write_job_spec(run_dir, job);
}

// Writes the facts that a script's workers have reported and the journal has. A coordinator that
// dies before that reads them from the journal again.
Status store_facts(const std::string& run_dir, const wire::DataFacts& given,
                   const wire::DataFacts& facts) {
  return given.open() && !facts.open() ? write_data_facts(run_dir, facts) : Status::ok();
}

// Anything may have changed the file while no process had the run. A resume compares the newest
// lines, and the run's end the old ones.
Status open_history(Begun& begun, const std::string& run_dir, BeginMode mode) {
  const Step keep = begun.term.beginning.completed;
  LOCKSTEP_ASSIGN_OR_RETURN(const auto pieces, begun.journal->pieces());
  LOCKSTEP_ASSIGN_OR_RETURN(
      begun.history, History::open(rundir::file_in(run_dir, rundir::kHistory), keep, pieces));
  const History::Steps steps = [&](Step from, Step to, const auto& visit) {
    return begun.journal->visit_steps(from, to, visit);
  };
  if (mode == BeginMode::kResume)
    return begun.history->correct(keep, steps, pieces, /*reads_all=*/false).status();
  return begun.history->fill(keep, steps);
}

Status open_eval_file(Begun& begun, const std::string& run_dir) {
  LOCKSTEP_ASSIGN_OR_RETURN(begun.evals, EvalFile::open(rundir::file_in(run_dir, rundir::kEvals),
                                                        predicts_tokens(begun.options.job)));
  return begun.evals->follow(begun.term.beginning.evals);
}

void tell(const BegunTerm& term, BeginMode mode, Logger& logger) {
  const Beginning& beginning = term.beginning;
  if (mode == BeginMode::kFirst) return;
  if (beginning.living) {
    logger.info("take_over",
                "generation " + std::to_string(beginning.living->generation) +
                    " goes on under a new coordinator",
                {{"completed", beginning.completed}, {"term", beginning.term}});
  } else {
    logger.info("resume",
                beginning.base_checkpoint.empty() ? "nothing to resume from: starts from the "
                                                    "beginning"
                                                  : "goes on from " + beginning.base_checkpoint,
                {{"step", beginning.base.step}, {"term", beginning.term}});
  }
}

}  // namespace

std::string job_to_json(const wire::JobSpec& job) {
  std::string text;
  // A JobSpec has no field that JSON cannot say.
  (void)google::protobuf::util::MessageToJsonString(job, &text);
  return text;
}

Result<wire::JobSpec> journaled_job(const std::string& run_dir) {
  const std::string path = journal_path(run_dir);
  LOCKSTEP_ASSIGN_OR_RETURN(const JournalContents contents,
                            peek_journal(path, JournalCheck::kOpenPart));
  if (contents.job_json.empty())
    return Status(Code::kNoInput, "the journal " + path + " knows no job");
  wire::JobSpec job;
  const auto parsed = google::protobuf::util::JsonStringToMessage(contents.job_json, &job);
  if (parsed.ok() && job.has_train()) return job;
  return Status(Code::kBadData, "the journal " + path + " has a job that cannot be read: " +
                                    std::string(parsed.message()));
}

Status check_journal(const std::string& run_dir, const std::string& journal, bool is_alive,
                     JournalCheck check, const AliveFn& alive) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto on_disk,
                            list_checkpoints(rundir::file_in(run_dir, rundir::kCheckpoints)));
  const auto contents = peek_journal(journal, check, alive);
  if (contents.status().code() == Code::kBadData)
    return lost_journal("cannot be read (" + contents.status().message() + ")", on_disk, run_dir);
  LOCKSTEP_RETURN_IF_ERROR(contents.status());
  return check_lineage(*contents, on_disk, run_dir, is_alive);
}

Result<Begun> begin_run(const std::string& run_dir, BeginMode mode, Seat& seat, const Clock& clock,
                        Logger& logger, const AliveFn& alive) {
  Begun begun;
  LOCKSTEP_ASSIGN_OR_RETURN(RunInputs inputs, read_run_inputs(run_dir));
  LOCKSTEP_RETURN_IF_ERROR(check_journal(run_dir, seat.journal(), mode == BeginMode::kTakeOver,
                                         JournalCheck::kOpenPart, alive));
  SqliteJournalOptions checked;
  checked.check = JournalCheck::kNone;
  checked.alive = alive;
  checked.on_upgrade = [&logger](const std::string& what) {
    logger.info("journal_upgraded", what);
  };
  LOCKSTEP_ASSIGN_OR_RETURN(begun.journal, open_sqlite_journal(seat.journal(), checked));
  LOCKSTEP_ASSIGN_OR_RETURN(const JournalContents contents, begun.journal->load());
  LOCKSTEP_ASSIGN_OR_RETURN(begun.options,
                            resolve_options(inputs.job, inputs.facts, contents.identity, run_dir));
  LOCKSTEP_ASSIGN_OR_RETURN(const Term term, seat.next_term(contents.last_term));
  const TermRequest request{mode, static_cast<uint32_t>(::getpid()), job_to_json(begun.options.job),
                            clock.both(), term};
  if (const std::string anew = begins_anew(contents); mode != BeginMode::kFirst && !anew.empty())
    logger.warn("journal_lost", anew);
  DirectoryShelf shelf(rundir::file_in(run_dir, rundir::kCheckpoints), alive);
  LOCKSTEP_ASSIGN_OR_RETURN(
      begun.term, begin_term(*begun.journal, contents, shelf, begun.options, request, logger));
  LOCKSTEP_RETURN_IF_ERROR(store_job(run_dir, inputs.job, begun.options.job));
  LOCKSTEP_RETURN_IF_ERROR(store_facts(run_dir, inputs.facts, begun.options.facts));
  LOCKSTEP_RETURN_IF_ERROR(open_history(begun, run_dir, mode));
  LOCKSTEP_RETURN_IF_ERROR(open_eval_file(begun, run_dir));
  tell(begun.term, mode, logger);
  return begun;
}

Result<bool> check_resume(const std::string& run_dir, const wire::JobSpec& job,
                          const wire::DataFacts& facts, Logger& logger) {
  const std::string path = journal_path(run_dir);
  LOCKSTEP_RETURN_IF_ERROR(check_journal(run_dir, path, false, JournalCheck::kOpenPart));
  if (::access(path.c_str(), F_OK) != 0) return false;
  LOCKSTEP_ASSIGN_OR_RETURN(const JournalContents contents,
                            peek_journal(path, JournalCheck::kNone));
  if (contents.mark.lineage_id.empty()) return false;  // nothing was ever written to it
  LOCKSTEP_ASSIGN_OR_RETURN(const auto journal, read_sqlite_journal(path, JournalCheck::kNone));
  DirectoryShelf shelf(rundir::file_in(run_dir, rundir::kCheckpoints));
  LOCKSTEP_ASSIGN_OR_RETURN(const Options options,
                            resolve_options(job, facts, contents.identity, run_dir));
  return check_term(*journal, contents, shelf, options, BeginMode::kResume, logger);
}

}  // namespace lockstep::coordinator
