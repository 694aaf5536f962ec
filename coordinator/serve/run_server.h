// The adapter between decide() and the world. It collects events, lets decide() judge them, commits
// the Persist actions, and then performs the other actions.
//
//   messages, closed connections, ticks, signals ─▶ queue ─▶ turn: decide each ─▶ one commit ─▶
//       send, append history, update metrics ─▶ (run over) write summary, wait for peers, on_end
//
// When a term ends and the run does not (EndTerm), no peer gets a Goodbye, the server writes no
// summary, and on_term_end comes at once.
//
// Between two turns the server folds old records in the journal (fold.h), a few at every tick.
//
// INVARIANTS
//  V1 No action leaves before the commit of its turn has returned ok.
//  V2 After a failed commit the server decides nothing any more. It tells every peer that the
//     coordinator stops, and on_end comes with 70.
//  V3 A superseded coordinator (claim.h) commits nothing and sends nothing. It closes connections,
//     so that every peer looks for the new one, and on_end comes with 75.
//  V4 Exactly one of on_term_end and on_end comes, once. on_end comes when all peers have gone,
//     including those that were away at the end, or when the linger time is over.
//
// Thread-safety: everything on the loop's thread, or before the loop runs.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <string>

#include "comm/base/clock.h"
#include "comm/base/log.h"
#include "comm/rpc/server.h"
#include "comm/rpc/transport.h"
#include "coordinator/decide/decide.h"
#include "coordinator/journal/eval_file.h"
#include "coordinator/journal/history.h"
#include "coordinator/journal/journal.h"
#include "coordinator/report/report.h"
#include "coordinator/report/run_stats.h"
#include "coordinator/trainer_status/body.h"
#include "metrics/exporters/coordinator_metrics.h"

namespace lockstep::coordinator {

// The results of the earlier terms, and how long they took.
struct EarlierTerms {
  RunStats stats;
  int64_t wall_ms = 0;
  bool is_take_over = false;  // agents and workers are reconnecting
};

class RunServer {
 public:
  // All outlive the server.
  struct Parts {
    rpc::Loop& loop;
    Journal& journal;
    History& history;
    Logger& logger;
    const Clock& clock;
    CoordinatorMetrics& metrics;
    std::function<void(int exit_code)> on_end;
    std::function<void(const std::string& why)> on_term_end;
    std::function<bool()> is_superseded = {};  // null: never
    EvalFile* evals = nullptr;                 // null: none is written
    // The SHA-256 of the manifest of the checkpoint `name`, as it lies in the run directory.
    std::function<Result<std::string>(const std::string& name)> read_manifest = {};
  };
  // If `state` has ended already, the server only tells the end to peers that ask, for a while.
  RunServer(Parts parts, Options options, State state, EarlierTerms earlier = {});
  ~RunServer();

  // Begins to accept workers and agents. `name`: RpcServer. kConfig if it cannot listen there.
  Status listen(rpc::Transport& transport, const rpc::Address& address, rpc::Token token,
                const std::string& name = "");
  const rpc::Address& control_address() const;

  void stop(const std::string& why);  // a signal

  // Sends every peer a sign of life.
  void beat();

  // Call it regularly, because there may be much time between two commits. True if another
  // coordinator has the run, and this one has ended.
  bool end_if_superseded();

  // For a run that was over before this server. Keeps its summary if it is of that end, else writes
  // a new one from the journal.
  Status keep_summary();

  std::string status(size_t members = std::numeric_limits<size_t>::max()) const;  // at most listed
  std::string job() const;                                                        // job_json.h
  std::string history(size_t points) const;                                       // watch_json.h
  std::string discovery(const std::string& own_address) const;
  std::string metrics();
  trainer::RunProgress progress() const;
  bool is_ready() const;  // a generation is training
  const State& state() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::coordinator
