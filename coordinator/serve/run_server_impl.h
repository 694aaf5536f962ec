// The parts of a RunServer. Internal to run_server.cc, which runs the turns, and run_server_end.cc,
// which ends them.
//
// Thread-safety: the loop's thread.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/serve/fold.h"
#include "coordinator/serve/run_server.h"
#include "coordinator/serve/server_away.h"
#include "metrics/base/goodput.h"

namespace lockstep::coordinator {

inline constexpr int64_t kReturnMs = 5'000;  // after it every peer has found a new coordinator

struct RunServer::Impl {
  Impl(Parts p, Options o, State s, EarlierTerms earlier)
      : parts(std::move(p)),
        options(std::move(o)),
        state(std::move(s)),
        began_ns(parts.clock.monotonic_ns() - earlier.wall_ms * 1'000'000),
        away(earlier.is_take_over ? parts.loop.now_ms() + kReturnMs : 0),
        goodput(began_ns),
        stats(std::move(earlier.stats)) {
    goodput.step_survives(stats.useful_seconds());
    if (auto order = order_of(options.identity); order.is_ok()) {
      folder.emplace(parts.journal, std::move(*order));
    }
  }

  ~Impl() {
    parts.loop.cancel(tick_timer);
    parts.loop.cancel(leave_timer);
  }

  void tick();
  void enqueue(Event event);
  void turn();
  bool commit(const std::vector<Action>& actions);
  History::Steps journalled_steps();
  Status write_history();
  Status check_files();
  Status write_evals(const std::vector<Action>& actions);
  bool commit(const std::vector<JournalEntry>& entries);
  void watch_phases(const JournalEntry& entry);
  void fold();
  void perform(Action& action);
  void read_manifest(const std::string& name);
  void finish();
  void end_term();
  Status write_summary();
  void stop_broken(const Status& status);
  void look_after_files();
  bool end_if_superseded();
  void leave_after(int64_t delay_ms);
  void end_when_alone();
  ReportTimes times() const;

  Parts parts;
  Options options;
  State state;
  int64_t began_ns;  // as if the terms had followed each other without a pause
  Away away;
  Goodput goodput;
  RunStats stats;
  PhaseWatch phases;
  StepWatch steps;
  std::optional<Folder> folder;
  std::unique_ptr<rpc::RpcServer> rpc;
  // The last envelope of this turn and its frame, for further receivers.
  struct {
    std::shared_ptr<const wire::Envelope> envelope;
    wire::SharedFrame frame;
  } shared;
  std::deque<Event> queue;
  bool is_turn_posted = false;
  bool is_broken = false;
  bool is_over = false;                 // only waits for peers to leave
  std::optional<std::string> term_end;  // why the term is over and the run is not
  bool has_ended = false;               // on_end was called
  int final_code = 0;
  rpc::TimerId tick_timer = 0;
  rpc::TimerId leave_timer = 0;
  // Work that is posted to the loop may run after the server is gone.
  std::shared_ptr<bool> alive = std::make_shared<bool>(true);
};

}  // namespace lockstep::coordinator
