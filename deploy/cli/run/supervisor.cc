#include "deploy/cli/run/supervisor.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <filesystem>

#include "comm/base/byte_units.h"
#include "comm/base/host_name.h"
#include "comm/rpc/asio_transport.h"
#include "comm/rpc/client.h"
#include "comm/run/directory/claim.h"
#include "comm/run/directory/layout.h"
#include "comm/run/directory/pulse.h"
#include "comm/run/directory/run_files.h"
#include "deploy/agent/after_loop.h"
#include "deploy/agent/process.h"
#include "deploy/agent/stop_signal_watch.h"
#include "deploy/cli/base/local_processes.h"
#include "deploy/cli/base/text.h"
#include "deploy/cli/run/own_run_dir.h"
#include "deploy/cli/run/shown_notes.h"
#include "deploy/cli/run/supervised_child.h"

namespace lockstep {
namespace {

constexpr int64_t kTerminalRefreshMs = 200;
constexpr int64_t kPlainRefreshMs = 500;
constexpr int64_t kStatusTimeoutMs = 1'000;
constexpr int64_t kReadyPollMs = 20;   // until a coordinator that starts can be told to stop
constexpr int64_t kAgentStopMs = 500;  // from a stop of the coordinator to one of the agent
constexpr int64_t kOrphansMs = 1'000;  // from the coordinator's end to the agent's SIGUSR2
constexpr int64_t kTellMs = 2'000;     // from then to words about a wait for scripts
constexpr int kSupersededLooks = 15;   // in a row, which a coordinator that is well does not see
constexpr int kSoftwareError = 70;
constexpr size_t kShownBytes = 8 * kKib;
constexpr size_t kAgentLines = 50;
constexpr uint64_t kLeastRoomBytes = kMib;  // with less free the disk is full

}  // namespace

struct Supervisor::Impl {
  Impl(SupervisorOptions o, Reporter& r)
      : options(std::move(o)),
        reporter(r),
        coordinator("coordinator", options.run_dir),
        agent("agent", options.run_dir) {}

  std::vector<std::string> coordinator_argv() const {
    std::vector<std::string> argv = {sibling_program("lockstep-coordinator"), "--run-dir",
                                     options.run_dir, "--seat", seat};
    if (was_ready() || options.take_over) {
      argv.push_back("--take-over");
    } else if (options.resume) {
      argv.push_back("--resume");
    }
    return argv;
  }

  std::vector<std::string> agent_argv() const {
    std::vector<std::string> argv = {sibling_program("lockstep"), "agent", "--run-dir",
                                     options.run_dir, "--supervised"};
    argv.insert(argv.end(), options.agent_words.begin(), options.agent_words.end());
    return argv;
  }

  Status start_children() {
    LOCKSTEP_RETURN_IF_ERROR(start(coordinator));
    return options.agent_words.empty() ? Status::ok() : start(agent);
  }

  Status start(SupervisedChild& child) {
    const bool is_agent = &child == &agent;
    return child.start(is_agent ? agent_argv() : coordinator_argv(), loop.now_ms(), !is_agent);
  }

  // A coordinator of this run has been ready; the file of an earlier run is gone.
  bool was_ready() const {
    return has_served ||
           std::filesystem::exists(rundir::file_in(options.run_dir, rundir::kCoordinator));
  }

  // True if `child` has died and another one is on its way.
  bool start_again(SupervisedChild& child, const std::string& what_now) {
    if (killing || !child.died()) return false;
    const auto pause_ms = child.take_restart(loop.now_ms());
    if (!pause_ms) return false;
    const std::string when =
        *pause_ms == 0 ? "" : " in " + fixed(static_cast<double>(*pause_ms) / 1e3, 2) + " s";
    reporter.note(child.death_text() + "; started again" + when + ", " + what_now);
    loop.call_after(*pause_ms, [this, &child] {
      if (!child.waits_for_restart()) return;
      const Status status = start(child);
      if (!status.is_ok()) return give_up(child, status.message());
      if (&child == &coordinator && end.stop_requested) tell_stop();
    });
    return true;
  }

  // True if another seat claimed a term after ours. Earlier terms are those that this run resumes.
  bool is_superseded() {
    const auto newest = newest_claim(options.run_dir);
    if (!newest.is_ok() || !*newest) return false;
    const bool is_ours = (*newest)->seat == seat;
    has_claimed = has_claimed || is_ours;
    return has_claimed && !is_ours;
  }

  // A coordinator that serves beats (comm/run/directory/pulse.h). One that stands still for so long
  // hangs.
  bool stands_still() {
    const auto file = read_coordinator_file(options.run_dir);
    if (!coordinator.is_running() || !file.is_ok() || file->pid != coordinator.pid()) {
      pulse.forget();
      return false;
    }
    return pulse.see(read_pulse(options.run_dir), newest_claimed(options.run_dir), loop.now_ms()) ==
           PulseWatch::Verdict::kLost;
  }

  // A coordinator that another one has replaced ends within a beat, if it does not hang.
  void watch_coordinator() {
    loop.call_after(kPulseLookMs, [this] { watch_coordinator(); });
    superseded_looks = coordinator.is_running() && is_superseded() ? superseded_looks + 1 : 0;
    if (superseded_looks < kSupersededLooks && !stands_still()) return;
    reporter.note("killing the coordinator, which hangs");
    pulse.forget();
    superseded_looks = 0;
    coordinator.send(SIGKILL);
  }

  void give_up(SupervisedChild& child, const std::string& why) {
    trouble = "the " + child.name() + " could not be started again: " + why;
    kill_all();
    if (children().empty()) loop.stop();
  }

  // ---- ending ----

  // Kills the processes that are still there then, and reports that as the run's trouble.
  void kill_after(int64_t delay_ms, const std::string& why) {
    loop.call_after(delay_ms, [this, why] {
      if (is_over()) return;
      trouble = "killed the remaining processes of the run: " + why;
      kill_all();
    });
  }

  void kill_all() {
    killing = true;
    coordinator.forget_restart();
    agent.forget_restart();
    for (const pid_t pid : children()) ::kill(pid, SIGKILL);
    // A process that has just begun has no command line yet by which it could be found.
    coordinator.send(SIGKILL);
    agent.send(SIGKILL);
  }

  // Includes the workers that this process got from a dead agent.
  std::vector<pid_t> children() const { return children_of_run(options.run_dir); }

  bool is_over() const { return coordinator.is_over() && agent.is_over(); }

  void on_signal(int signal) {
    if (signal == SIGCHLD) return reap();
    if (signal == SIGTSTP) return suspend();
    if (signal == SIGCONT) return go_on();
    const bool asks_again = stop_signals.asks_again(loop.now_ms());
    const bool hurries = asks_again && (signal == SIGINT || (signal == SIGTERM && may_hurry));
    // A scheduler that has sent SIGUSR1 sends SIGTERM some time later, to the same end.
    if (!end.stop_requested) {
      end.stop_requested = true;
      may_hurry = !options.is_launched && signal != SIGUSR1;
      reporter.note(
          "stopping after a checkpoint at the next step" +
          std::string(signal == SIGINT ? " (Ctrl-C again: at once, without a checkpoint)" : ""));
      tell_stop();
      // The coordinator and the agent have deadlines of their own; this one is for when they hang.
      kill_after(options.grace_ms + options.leave_ms + options.more_for_workers_ms,
                 "the run did not end within the grace time");
    } else if (hurries) {
      trouble = has_checkpoint(options.run_dir)
                    ? "ended at once, as asked; the last checkpoint stays"
                    : "ended at once, as asked, before the first checkpoint: its steps are lost";
      kill_all();
    }
  }

  // Ctrl-Z stops the whole run on this machine, and `fg` or `bg` continue it.
  void suspend() {
    reporter.passing("");
    agent.send(SIGTSTP);
    coordinator.send(SIGSTOP);
    ::raise(SIGSTOP);
  }

  void go_on() {
    coordinator.send(SIGCONT);
    agent.send(SIGCONT);
  }

  // The coordinator tells all members. The agent is told only when that was not enough: workers
  // that die of its signal before they can handle one would look like a failure to a coordinator
  // that has not heard of the stop yet.
  void tell_stop() {
    loop.cancel(stop_timer);
    if (killing) return;
    if (coordinator.is_over()) return agent.send(SIGTERM);
    const auto file = read_coordinator_file(options.run_dir);
    if (!coordinator.is_running() || !file.is_ok() || file->pid != coordinator.pid()) {
      stop_timer = loop.call_after(kReadyPollMs, [this] { tell_stop(); });
      return;
    }
    coordinator.send(SIGTERM);
    stop_timer = loop.call_after(kAgentStopMs, [this] { agent.send(SIGTERM); });
  }

  void reap() {
    for (Reaped reaped = reap_one(); reaped.pid > 0; reaped = reap_one()) {
      if (reaped.pid == coordinator.pid()) on_coordinator_end(reaped.end);
      if (reaped.pid == agent.pid()) on_agent_end(reaped.end);
    }
    if (!is_over()) return;
    if (children().empty()) return loop.stop();
    kill_all();  // workers whose agent is dead; SIGCHLD brings us here again
  }

  // A death that nothing follows.
  void note_loss(const SupervisedChild& child) {
    if (killing || !child.was_lost()) return;
    deaths += (deaths.empty() ? "" : "; ") + child.death_text() + ", its last words are in " +
              child.output_path();
  }

  void on_coordinator_end(const ProcessEnd& how) {
    coordinator.ended(how);
    if (!killing && !options.agent_words.empty() && is_superseded()) return on_superseded();
    if (start_again(coordinator, was_ready() ? "it takes over" : "from the beginning")) return;
    note_loss(coordinator);
    agent.forget_restart();
    if (!agent.is_running()) return;
    // It ended before any process could find it: agent and workers only wait for it, without state.
    if (!was_ready()) return kill_all();
    if (coordinator.died()) {
      agent.send(SIGTERM);  // no other process will tell the workers
      return kill_after(options.grace_ms, "workers were still there after the coordinator's death");
    }
    // An agent that was started meanwhile, or whose coordinator could not begin, has not heard.
    loop.call_after(kOrphansMs, [this] { agent.send(SIGUSR2); });
    // An agent or worker that missed the end would wait for a coordinator that never returns.
    const int64_t orphans_ms = kOrphansMs + options.more_for_workers_ms;
    loop.call_after(orphans_ms, [this] { agent.send(SIGTERM); });
    loop.call_after(orphans_ms + 2 * StopSignalWatch::kEchoMs,
                    [this] { agent.send(SIGINT); });  // workers are killed
    kill_after(options.leave_ms + options.more_for_workers_ms,
               "workers were still there after the coordinator had ended");
    if (options.more_for_workers_ms > 0) loop.call_after(kTellMs, [this] { tell_of_wait(); });
  }

  void tell_of_wait() {
    if (!agent.is_running() || killing) return;
    const int64_t seconds = (options.leave_ms + options.more_for_workers_ms) / 1000;
    reporter.note("the run is over; waiting up to " + std::to_string(seconds) +
                  " s for its scripts to end (cluster.leave_s)");
  }

  void on_superseded() {
    superseded = true;
    agent.forget_restart();
    reporter.note(
        "another machine took this one for lost and runs the coordinator now; the workers here "
        "continue under that one");
  }

  void on_agent_end(const ProcessEnd& how) {
    agent.ended(how);
    const bool is_needed = !coordinator.is_over() && !end.stop_requested;
    if (is_needed && start_again(agent, "with new workers: the old ones died with it")) {
      for (const pid_t pid : children())
        if (pid != coordinator.pid()) ::kill(pid, SIGKILL);
      return;
    }
    if (!end.stop_requested || how.signal != SIGTERM) note_loss(agent);
    if (!coordinator.is_over() && !is_superseded())
      kill_after(options.leave_ms, "the coordinator was still there after the agent had ended");
  }

  void show_output(bool last) {
    for (const std::string& line : coordinator.output().new_lines(50, last)) {
      shown = (shown + line + "\n").substr(shown.size() > kShownBytes ? line.size() + 1 : 0);
      reporter.note(line);
    }
    for (const std::string& line : notes.news()) reporter.note(line);
    if (options.agent_words.empty()) return;
    // The agent's own words repeat what the coordinator made of them, unless it could not.
    std::vector<std::string> lines = agent.output().new_lines(50, last);
    for (const std::string& line : lines)
      if (line.find(rpc::RpcClient::kTroubleWords) != std::string::npos) reporter.note(line);
    if (script.see(lines)) reporter.note(script.what);
    agent_lines.insert(agent_lines.end(), lines.begin(), lines.end());
    if (agent_lines.size() > kAgentLines)
      agent_lines.erase(agent_lines.begin(), agent_lines.end() - kAgentLines);
    const bool heard = !coordinator.died() && agent.end().exit_code == coordinator.end().exit_code;
    if (!last || heard || script.exit_code != 0) return;
    for (const std::string& line : agent_lines) reporter.note(line);
  }

  void refresh() {
    show_output(false);
    has_served = was_ready();  // the file may be lost later
    if (coordinator.is_running()) {
      const auto status = ask_status(options.run_dir, kStatusTimeoutMs);
      if (status.is_ok()) reporter.status(parse_status(*status), loop.now_ms());
    }
    loop.call_after(reporter.is_terminal() ? kTerminalRefreshMs : kPlainRefreshMs,
                    [this] { refresh(); });
  }

  RunEnd run(StopSignals& held) {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    ::signal(SIGPIPE, SIG_IGN);  // a reader of our output that leaves must not end the training
    loop.on_signals({SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGTSTP, SIGCONT},
                    [this](int s) { on_signal(s); });
    held.release();
    const Status started = start_children();
    if (!started.is_ok()) {
      trouble = started.message();
      kill_all();
      if (coordinator.pid() == 0) return {exit_code(started), trouble, false};
    }
    refresh();
    watch_coordinator();
    loop.run();
    show_output(true);
    end.exit_code = final_code(started);
    end.is_complete = end.exit_code == (trouble.empty() ? script.exit_code : 0);
    end.trouble = final_trouble();
    return end;
  }

  int final_code(const Status& started) const {
    if (!started.is_ok()) return exit_code(started);
    if (!trouble.empty()) return kSoftwareError;
    if (superseded) return agent.died() ? kSoftwareError : agent.end().exit_code;
    if (coordinator.died()) return kSoftwareError;
    if (coordinator.end().exit_code == 0 && agent.was_lost() && !killing) return kSoftwareError;
    return coordinator.end().exit_code == 0 ? script.exit_code : coordinator.end().exit_code;
  }

  // On a full disk the coordinator's last words may have found no place in its output.
  std::string final_trouble() const {
    const bool failed = end.exit_code == kSoftwareError;
    std::string lack = failed ? lack_of_room(options.run_dir, kLeastRoomBytes) : "";
    if (!lack.empty()) lack += "; make room there";
    if (!std::filesystem::exists(options.run_dir))
      lack = "the run directory " + options.run_dir + " was moved or deleted under the run";
    std::string words = coordinator.last_words();
    if (shown.find(words.substr(0, words.find('\n'))) != std::string::npos) words.clear();
    std::string text;
    for (const std::string& part : {lack, words, deaths, trouble})
      if (!part.empty()) text += (text.empty() ? "" : "; ") + part;
    return text;
  }

  SupervisorOptions options;
  Reporter& reporter;
  WorkerNotes notes{options.run_dir};
  const std::string seat = options.seat.empty() ? new_seat(host_name()) : options.seat;
  rpc::AsioLoop loop;
  SupervisedChild coordinator;
  SupervisedChild agent;
  PulseWatch pulse;
  RunEnd end;
  rpc::TimerId stop_timer = 0;  // of tell_stop()
  StopSignalWatch stop_signals;
  bool may_hurry = false;    // a SIGTERM that comes now
  bool killing = false;      // from here on a child's death is our doing
  bool has_claimed = false;  // a term, as far as was seen
  int superseded_looks = 0;  // in a row at which ours runs and has no right to
  bool has_served = false;   // a coordinator has been ready
  AfterLoop script;          // that failed after its loop
  bool superseded = false;   // the run goes on without a coordinator of ours
  std::string deaths;        // of children that were not told to end and do not come back
  std::string trouble;
  std::string shown;                     // the end of the coordinator's output
  std::vector<std::string> agent_lines;  // the end of the agent's
};

Supervisor::Supervisor(SupervisorOptions options, Reporter& reporter)
    : impl_(std::make_unique<Impl>(std::move(options), reporter)) {}

Supervisor::~Supervisor() = default;

RunEnd Supervisor::run(StopSignals& held) {
  return impl_->run(held);
}

}  // namespace lockstep
