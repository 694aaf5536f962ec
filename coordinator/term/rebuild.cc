#include "coordinator/term/rebuild.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <vector>

#include "comm/base/clock.h"
#include "comm/base/file.h"
#include "comm/run/checkpoint/store.h"
#include "comm/run/directory/claim.h"
#include "comm/run/directory/layout.h"
#include "coordinator/journal/history.h"
#include "coordinator/journal/journal_head.h"
#include "coordinator/journal/journal_sqlite.h"
#include "coordinator/state/identity.h"
#include "coordinator/state/options.h"
#include "coordinator/term/begin.h"

namespace lockstep::coordinator {
namespace {

namespace fs = std::filesystem;

// The sweep of a run directory removes what a crash leaves.
constexpr char kTemporary[] = "journal.db.tmp.rebuild";

struct Source {
  CheckpointInfo info;
  std::vector<ListedCheckpoint> on_disk;
};

Result<Source> find_source(const std::string& run_dir, const std::string& name) {
  const std::string directory = rundir::file_in(run_dir, rundir::kCheckpoints);
  Source source;
  LOCKSTEP_ASSIGN_OR_RETURN(source.on_disk, list_checkpoints(directory));
  std::string names;
  bool is_there = false;
  for (const ListedCheckpoint& listed : source.on_disk) {
    const std::string there = checkpoint_name(listed.name);
    names += (names.empty() ? "" : ", ") + there;
    is_there = is_there || there == name;
  }
  if (!is_there)
    return Status(Code::kNoInput, "there is no checkpoint " + name + " in " + directory + "; " +
                                      (names.empty() ? "there is none at all"
                                                     : "--from-checkpoint takes one of " + names));
  LOCKSTEP_ASSIGN_OR_RETURN(source.info, verify_checkpoint(directory + "/" + name));
  const StepProof& proof = source.info.manifest.proof;
  if (proof.is_known() && proof.steps() == source.info.manifest.resume.step) return source;
  return Status(Code::kBadData, "checkpoint " + name +
                                    " does not carry what a journal is rebuilt from (an older "
                                    "Lockstep wrote it); take another one of " +
                                    names + ", or begin anew in another --run-dir");
}

// The keys that a manifest knows.
std::vector<IdentityEntry> known_identity(uint64_t seed, const std::string& fingerprint,
                                          uint64_t slots, uint64_t global_batch) {
  return {{kSeedKey, std::to_string(seed)},
          {kFingerprintKey, fingerprint},
          {kSlotsKey, std::to_string(slots)},
          {kGlobalBatchKey, std::to_string(global_batch)}};
}

// Takes from the checkpoint what was open in the job.
Result<Options> options_of(const Manifest& manifest, wire::JobSpec job,
                           const wire::DataFacts& facts, const std::string& run_dir) {
  if (facts.open())
    return Status(Code::kBadData,
                  run_dir +
                      "/facts.pb does not say how many samples the script has, and only the "
                      "lost journal knew it; put facts.pb back from a copy of the run, or "
                      "begin anew in another --run-dir");
  if (job.train().slots() == 0) job.mutable_train()->set_slots(manifest.slots);
  if (job.train().global_batch() == 0) job.mutable_train()->set_global_batch(manifest.global_batch);
  LOCKSTEP_RETURN_IF_ERROR(
      check_identity(known_identity(manifest.seed, manifest.dataset_fingerprint, manifest.slots,
                                    manifest.global_batch),
                     known_identity(job.seed(), facts.train_fingerprint(), job.train().slots(),
                                    job.train().global_batch())));
  return make_options(job, facts, run_dir);
}

CheckpointEntry entry_of(const CheckpointInfo& info, CheckpointState state) {
  const Manifest& m = info.manifest;
  return {info.name,        m.resume.step, m.generation, m.member, info.manifest_sha256,
          m.weights_sha256, info.bytes,    false,        state};
}

void add_membership(const Source& source, Term term, std::vector<JournalEntry>* entries) {
  const Manifest& manifest = source.info.manifest;
  CheckpointName newest{0, manifest.generation, manifest.member};
  for (const ListedCheckpoint& listed : source.on_disk) {
    newest.generation = std::max(newest.generation, listed.name.generation);
    newest.member = std::max(newest.member, listed.name.member);
  }
  entries->push_back(MemberEntry{manifest.member, term, {}, 0, 0});
  if (newest.member != manifest.member)
    entries->push_back(MemberEntry{newest.member, term, {}, 0, 0});
  entries->push_back(
      GenerationEntry{manifest.generation, term, GenerationState::kClosed, {manifest.member}, {}});
  if (newest.generation != manifest.generation)
    entries->push_back(
        GenerationEntry{newest.generation, term, GenerationState::kAbandoned, {}, {}});
}

void add_steps(const Manifest& manifest, const Options& options, const std::string& run_dir,
               std::vector<JournalEntry>* entries) {
  const Step end = manifest.resume.step;
  const auto told = read_history(rundir::file_in(run_dir, rundir::kHistory), end);
  std::map<Step, StepEntry> recorded;  // the newest ones, which history.jsonl may lack
  for (const wire::StepRecords& batch : manifest.unacknowledged) {
    for (const wire::StepRecord& record : batch.records())
      recorded[record.step()] = step_entry(record, manifest.generation);
  }
  for (Step step = 0; step < end; ++step) {
    const StepPlan plan = plan_step(options.shape, step);
    const auto record = recorded.find(step);
    const bool is_known = record != recorded.end() || step < told.size();
    StepEntry entry = record != recorded.end() ? record->second
                      : is_known               ? told[step]
                                               : unknown_step(step);
    entry.generation = manifest.generation;
    entry.epoch = plan.epoch;
    if (!is_known) entry.samples = plan.samples;
    entries->push_back(entry);
  }
}

std::vector<JournalEntry> entries_of(const Source& source, const Options& options, Term term,
                                     const std::string& run_dir) {
  const Manifest& manifest = source.info.manifest;
  const Generation generation = manifest.generation;
  std::vector<JournalEntry> entries;
  entries.push_back(TermEntry{term, static_cast<uint32_t>(::getpid()), job_to_json(options.job)});
  for (const IdentityEntry& entry : options.identity) entries.push_back(entry);
  add_membership(source, term, &entries);
  const ResumePoint end{manifest.resume.step, Phase::kTrain};
  const std::string reason = "rebuilt from checkpoint " + source.info.name;
  entries.push_back(LedgerEntry{{generation, {0, Phase::kTrain}, end, false, reason}});
  for (const wire::SkippedSlots& skip : manifest.skipped)
    entries.push_back(SkipEntry{0,
                                skip.step(),
                                {skip.slots().begin(), skip.slots().end()},
                                "left out before the journal was rebuilt"});
  Step first = 0;
  for (const ProvenBlock& block : manifest.proof.blocks()) {
    entries.push_back(FoldEntry{generation, first, block.last, block.samples, block.digest});
    first = block.last;
  }
  add_steps(manifest, options, run_dir, &entries);
  // The proof covers the batches that the manifest carries.
  if (!manifest.unacknowledged.empty())
    entries.push_back(
        RecordsEntry{generation, manifest.member, manifest.unacknowledged.back().batch(), {}});
  for (const ListedCheckpoint& listed : source.on_disk) {
    if (!listed.status.is_ok()) continue;
    const bool is_source = listed.info.name == source.info.name;
    entries.push_back(entry_of(
        listed.info, is_source ? CheckpointState::kComplete : CheckpointState::kRolledBack));
  }
  entries.push_back(EventEntry{generation, "journal_rebuilt", "the journal was " + reason});
  return entries;
}

void remove_journal(const std::string& path) {
  std::error_code ignored;
  for (const char* end : {"", "-wal", "-shm", "-journal"}) fs::remove(path + end, ignored);
}

Status write_journal(const std::string& path, const std::vector<JournalEntry>& entries,
                     int64_t wall_ms) {
  remove_journal(path);
  SqliteJournalOptions options;
  options.has_head = false;
  {
    LOCKSTEP_ASSIGN_OR_RETURN(const auto journal, open_sqlite_journal(path, options));
    LOCKSTEP_RETURN_IF_ERROR(journal->commit(entries, wall_ms));
  }
  // Closing the journal has moved the log into the file. Looks whether all of it is there.
  std::error_code error;
  if (fs::exists(path + "-wal", error))
    return {Code::kInternal, "the rebuilt journal " + path + " could not be closed"};
  return read_sqlite_journal(path).status();
}

// journal.db, journal-7.db, and the files that SQLite keeps next to them.
std::vector<fs::path> journal_files(const std::string& run_dir) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(run_dir, error)) {
    const std::string name = entry.path().filename().string();
    const bool is_journal =
        name.starts_with("journal") && (name.ends_with(".db") || name.ends_with(".db-wal") ||
                                        name.ends_with(".db-shm") || name.ends_with(".db-journal"));
    if (is_journal) found.push_back(entry.path());
  }
  return found;
}

// The log goes first: a file without its log is older, and is known as such; a log never meets
// another file.
Status set_aside(const std::string& run_dir) {
  std::vector<fs::path> files = journal_files(run_dir);
  std::sort(files.begin(), files.end(),
            [](const auto& a, const auto& b) { return a.string().size() > b.string().size(); });
  int number = 1;
  const auto aside = [&number](const fs::path& path) {
    return path.string() + ".lost-" + std::to_string(number);
  };
  const auto is_taken = [&](const fs::path& path) { return fs::exists(aside(path)); };
  while (std::any_of(files.begin(), files.end(), is_taken)) ++number;
  for (const fs::path& path : files) {
    std::error_code error;
    fs::rename(path, aside(path), error);
    if (error) return {Code::kInternal, "cannot rename " + path.string() + ": " + error.message()};
  }
  return Status::ok();
}

Status install(const std::string& run_dir, const std::string& temporary) {
  LOCKSTEP_RETURN_IF_ERROR(set_aside(run_dir));
  const std::string path = rundir::file_in(run_dir, rundir::kJournal);
  std::error_code error;
  fs::remove(head_path(path), error);
  fs::rename(temporary, path, error);
  if (error) return {Code::kInternal, "cannot rename " + temporary + ": " + error.message()};
  return sync_directory(run_dir);
}

}  // namespace

Status rebuild_journal(const std::string& run_dir, const std::string& name,
                       const wire::JobSpec& job, const wire::DataFacts& facts) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Source source, find_source(run_dir, name));
  const Status lost = check_journal(run_dir, journal_path(run_dir), false);
  if (lost.is_ok())
    return {Code::kUsage, "the journal of " + run_dir +
                              " is whole and needs no --from-checkpoint: resume without it"};
  if (lost.code() != Code::kBadData) return lost;
  LOCKSTEP_ASSIGN_OR_RETURN(const Options options,
                            options_of(source.info.manifest, job, facts, run_dir));
  const std::string temporary = rundir::file_in(run_dir, kTemporary);
  const Term term = std::max<Term>(1, newest_claimed(run_dir));
  LOCKSTEP_RETURN_IF_ERROR(write_journal(temporary, entries_of(source, options, term, run_dir),
                                         SystemClock().wall_ms()));
  return install(run_dir, temporary);
}

}  // namespace lockstep::coordinator
