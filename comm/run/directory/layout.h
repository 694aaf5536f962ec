// The one list of the names in a run directory.
//
// Thread-safety: constants and pure functions.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::rundir {

// Written by `lockstep run`, before any other program of the run starts.
inline constexpr char kJob[] = "job.pb";        // wire::JobSpec, resolved (run_files.h)
inline constexpr char kJobText[] = "job.yaml";  // the same, for people
inline constexpr char kFacts[] = "facts.pb";    // wire::DataFacts
inline constexpr char kToken[] = "token";       // of control and data
inline constexpr char kHttpToken[] = "http_token";
inline constexpr char kRunLock[] = "run.lock";    // held by `lockstep run`
inline constexpr char kLaunch[] = "launch.json";  // deploy/agent/launch_record.h
inline constexpr char kLaunchRefusal[] = "launch-refused.json";

// Written by the coordinator.
inline constexpr char kCoordinator[] = "coordinator.json";  // where it listens
inline constexpr char kCoordinatorLock[] = "lock";
inline constexpr char kJournal[] = "journal.db";
inline constexpr char kHead[] = "journal.head";  // coordinator/journal/journal_head.h
inline constexpr char kTerms[] = "terms";        // comm/run/directory/claim.h
inline constexpr char kPulse[] = "pulse";        // comm/run/directory/pulse.h
inline constexpr char kSummary[] = "summary.json";
inline constexpr char kHistory[] = "history.jsonl";
inline constexpr char kThinHistory[] = "history-thin.jsonl";  // coordinator/journal/thin_history.h
inline constexpr char kEvals[] = "evals.jsonl";

// Written by the writer of a script's run (worker/python/lockstep/_log.py).
inline constexpr char kScriptLog[] = "script_log.jsonl";

// Directories.
inline constexpr char kCheckpoints[] = "checkpoints";
inline constexpr char kLogs[] = "logs";
inline constexpr char kModelNotes[] = "model-notes.txt";  // in logs; a sentence a line
inline constexpr char kWaits[] = "waits.txt";  // in logs; worker/python/lockstep/_waits.py
inline constexpr char kTrace[] = "trace";
inline constexpr char kCache[] = "cache";  // unless data.cache_dir names another

// The entries that an attempt may leave if it failed before the run began.
inline constexpr std::string_view kBeforeTheRun[] = {
    kJobText, kJob,           kFacts,       kToken,   kHttpToken, kCoordinatorLock, kRunLock,
    kCache,   kLogs,          kCheckpoints, kSummary, kHistory,   "log.jsonl",      kCoordinator,
    kLaunch,  kLaunchRefusal, kTerms,       kPulse,   kHead,      kEvals,           kThinHistory};

// Separates the name of a file from the rest of the name while a process writes it. A process that
// is killed leaves such files, which no program reads.
inline constexpr std::string_view kTemporaryMark = ".tmp.";

// Whether an entry of a directory may be there before a run has begun: one of kBeforeTheRun, or a
// half-written file of ours.
inline bool is_before_the_run(std::string_view name) {
  const size_t mark = name.find(kTemporaryMark);
  if (mark != std::string_view::npos) {
    name = name.substr(0, mark);
    if (name == kJournal) return true;
  }
  for (const std::string_view ours : kBeforeTheRun)
    if (name == ours) return true;
  return false;
}

// The folder of `lockstep preflight`, which removes it unless it is killed: preflight-LAUNCH.tmp.
inline constexpr char kPreflight[] = "preflight-";

// True if an entry says nothing about a run: what `lockstep preflight` left, or the name that a
// network file system gives to an open file that was removed.
inline bool is_no_matter(std::string_view name) {
  return (name.starts_with(kPreflight) && name.ends_with(".tmp")) || name.starts_with(".nfs") ||
         name.starts_with(".fuse_hidden");
}

inline std::string file_in(const std::string& run_dir, std::string_view name) {
  return run_dir + "/" + std::string(name);
}

// The file of a process in RUN_DIR/logs.
inline std::string log_in(const std::string& run_dir, const std::string& name) {
  return file_in(file_in(run_dir, kLogs), name);
}

}  // namespace lockstep::rundir
