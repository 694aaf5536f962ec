// The adapter between decide() and the world: collects events, lets decide() judge them, commits
// what it wants durable, and only then performs what it wants done.
//
//   messages, closed connections, ticks, signals ─▶ queue ─▶ turn: decide each ─▶ one commit ─▶
//       send, append history, update metrics ─▶ (run over) write summary, wait for peers, on_end
//
// A term that ends without the run (EndTerm) ends likewise, but nobody is told Goodbye, no summary
// is written, and on_term_end comes at once.
//
// Between two turns old records in the journal are folded (fold.h), a little at every tick.
//
// INVARIANTS
//  V1 No action leaves before the commit of its turn has returned ok.
//  V2 After a failed commit nothing is decided any more: everybody is told that the coordinator
//     stops, and on_end comes with 70.
//  V3 A coordinator that another one has superseded (claim.h) commits nothing, and tells nobody
//     anything: connections are closed, so that everybody looks for the other one, and on_end comes
//     with 75.
//  V4 Either on_term_end or on_end comes, exactly once; on_end when all peers have gone, those too
//     that were away when the run ended, or the linger time is over.
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
#include "coordinator/journal/history.h"
#include "coordinator/journal/journal.h"
#include "coordinator/report/report.h"
#include "coordinator/report/run_stats.h"
#include "coordinator/trainer_status/body.h"
#include "metrics/exporters/coordinator_metrics.h"

namespace lockstep::coordinator {

// What the terms before have done, and how long they took.
struct EarlierTerms {
  RunStats stats;
  int64_t wall_ms = 0;
  bool is_take_over = false;  // agents and workers are on their way back to us
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
  };
  // A `state` that has ended already is only told to those who ask, for a while.
  RunServer(Parts parts, Options options, State state, EarlierTerms earlier = {});
  ~RunServer();

  // Begins to accept workers and agents. kConfig when it cannot listen there.
  Status listen(rpc::Transport& transport, const rpc::Address& address, rpc::Token token);
  const rpc::Address& control_address() const;

  void stop(const std::string& why);  // a signal

  // Tells everybody that it is there.
  void beat();

  // Between two commits there may be much time. True if it has ended for that.
  bool end_if_superseded();

  // For a run that was over before this server: its summary stays if it tells that end, else it is
  // written anew from what the journal knows.
  Status keep_summary();

  std::string status(size_t members = std::numeric_limits<size_t>::max()) const;  // listed at most
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
