// A child of `lockstep run` through all its restarts: its command line, its present process, and
// the restarts that are left.
//
// Thread-safety: one thread, the one with its parent-death signal (process.h).
#pragma once

#include <signal.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/base/limits.h"
#include "comm/run/directory/layout.h"
#include "deploy/agent/process.h"
#include "deploy/agent/restart_budget.h"
#include "deploy/agent/words_memory.h"
#include "deploy/cli/base/file_follower.h"

namespace lockstep {

class SupervisedChild {
 public:
  SupervisedChild(std::string name, const std::string& run_dir)
      : name_(std::move(name)),
        output_path_(rundir::log_in(run_dir, name_ + ".stderr")),
        output_(output_path_) {}

  // `leaves_words`: the program writes the reason of its end to the descriptor --last-words-fd.
  Status start(std::vector<std::string> argv, int64_t now_ms, bool leaves_words = false);
  void ended(const ProcessEnd& end);

  // The pause before the next start, or none if no restarts are left: the budget is spent, the
  // program cannot run here, or it has died soon after each of its last starts. Counts the restart.
  std::optional<int64_t> take_restart(int64_t now_ms);
  void forget_restart() { waits_ = false; }
  bool waits_for_restart() const { return waits_; }

  bool is_running() const { return pid_ > 0 && !has_ended_; }
  // True if it neither runs nor will start again.
  bool is_over() const { return !is_running() && !waits_; }
  // True if its last process was killed or crashed.
  bool died() const;
  // The same, but not by the SIGUSR2 that ends an agent that has just begun when the run ends.
  bool was_lost() const { return died() && end_.signal != SIGUSR2; }
  void send(int signal) const;

  const std::string& name() const { return name_; }
  pid_t pid() const { return pid_; }  // of the last process
  const ProcessEnd& end() const { return end_; }
  const std::string& output_path() const { return output_path_; }
  FileFollower& output() { return output_; }
  // Why the last process failed, as it left it; "" if it did not fail, or left nothing.
  std::string last_words() const;
  // "the agent (pid 7) was killed by signal 9 (Killed)".
  std::string death_text() const;

 private:
  std::string name_;
  std::string output_path_;
  FileFollower output_;
  std::optional<WordsMemory> words_;  // of a child that leaves them
  pid_t pid_ = 0;
  bool has_ended_ = false;
  bool waits_ = false;
  ProcessEnd end_;
  int64_t started_ms_ = 0;
  uint32_t quick_deaths_ = 0;
  RestartBudget budget_{limits::kSupervisedRestarts, limits::kRestartWindowMs};
};

}  // namespace lockstep
