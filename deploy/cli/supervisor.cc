#include "deploy/cli/supervisor.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "comm/rpc/asio_transport.h"
#include "deploy/agent/process.h"
#include "deploy/cli/file_follower.h"

namespace lockstep {
namespace {

constexpr int64_t kTerminalRefreshMs = 200;
constexpr int64_t kPlainRefreshMs = 500;
constexpr int64_t kStatusTimeoutMs = 1'000;
constexpr int kSoftwareError = 70;

struct Child {
  std::string name;
  std::string output_path;
  pid_t pid = 0;
  bool ended = false;
  ProcessEnd end;
  std::unique_ptr<FileFollower> output;
};

// Children that this process got from a dead agent.
std::vector<pid_t> all_children() {
  const std::string pid = std::to_string(::getpid());
  std::ifstream file("/proc/" + pid + "/task/" + pid + "/children");
  std::vector<pid_t> children;
  for (pid_t child = 0; file >> child;) children.push_back(child);
  return children;
}

}  // namespace

struct Supervisor::Impl {
  Impl(SupervisorOptions o, Reporter& r) : options(std::move(o)), reporter(r) {}

  Status start(Child& child, const std::string& name, std::vector<std::string> argv) {
    child.name = name;
    child.output_path = options.run_dir + "/logs/" + name + ".stderr";
    child.output = std::make_unique<FileFollower>(child.output_path);
    LOCKSTEP_ASSIGN_OR_RETURN(child.pid,
                              start_process({std::move(argv), child.output_path, SIGTERM}));
    return Status::ok();
  }

  Status start_children() {
    std::vector<std::string> argv = {sibling_program("lockstep-coordinator"), "--run-dir",
                                     options.run_dir};
    if (options.resume) argv.push_back("--resume");
    LOCKSTEP_RETURN_IF_ERROR(start(coordinator, "coordinator", std::move(argv)));
    return start(agent, "agent",
                 {sibling_program("lockstep"), "agent", "--run-dir", options.run_dir, "--workers",
                  std::to_string(options.workers)});
  }

  static void send(const Child& child, int signal) {
    if (child.pid > 0 && !child.ended) ::kill(child.pid, signal);
  }

  // Whoever is still there then is killed, and the run is not as it should be.
  void kill_after(int64_t delay_ms, const std::string& why) {
    loop.call_after(delay_ms, [this, why] {
      if (is_over()) return;
      trouble = "killed what was left of the run: " + why;
      kill_all();
    });
  }

  void kill_all() {
    killing = true;
    for (const pid_t pid : all_children()) ::kill(pid, SIGKILL);
    send(coordinator, SIGKILL);
    send(agent, SIGKILL);
  }

  bool is_over() const {
    return (coordinator.pid == 0 || coordinator.ended) && (agent.pid == 0 || agent.ended);
  }

  void on_signal(int signal) {
    if (signal == SIGCHLD) return reap();
    if (!end.stop_requested) {
      end.stop_requested = true;
      reporter.note("stopping: a checkpoint at the next step, then the end" +
                    std::string(signal == SIGINT ? " (Ctrl-C again: at once, without it)" : ""));
      send(coordinator, SIGTERM);
      send(agent, SIGTERM);
      // The coordinator and the agent have deadlines of their own; this one is for when they hang.
      kill_after(options.grace_ms + options.leave_ms, "it did not end within the grace time");
    } else if (signal == SIGINT || signal == SIGTERM) {
      trouble = "ended at once, as asked; the last checkpoint stays";
      kill_all();
    }
  }

  void reap() {
    for (Reaped reaped = reap_one(); reaped.pid > 0; reaped = reap_one()) {
      if (reaped.pid == coordinator.pid) on_coordinator_end(reaped.end);
      if (reaped.pid == agent.pid) on_agent_end(reaped.end);
    }
    if (!is_over()) return;
    if (!has_children()) return loop.stop();
    kill_all();  // workers whose agent is dead; SIGCHLD brings us here again
  }

  // True if the child ended in a way that it did not choose.
  static bool died(const Child& child) {
    for (int code : {0, 64, 65, 66, 70, 75, 78})
      if (child.end.exit_code == code) return false;
    return true;
  }

  bool coordinator_was_ready() const {
    return std::filesystem::exists(options.run_dir + "/coordinator.json");
  }

  void note_end(Child& child, const ProcessEnd& how) {
    child.ended = true;
    child.end = how;
    if (killing || !died(child)) return;
    deaths += (deaths.empty() ? "the " : "; the ") + child.name + " (pid " +
              std::to_string(child.pid) + ") " + how.text() + ", its last words are in " +
              child.output_path;
  }

  void on_coordinator_end(const ProcessEnd& how) {
    note_end(coordinator, how);
    if (agent.ended) return;
    // It ended before anybody could find it: agent and workers only wait for it, and hold nothing.
    if (!died(coordinator) && !coordinator_was_ready()) return kill_all();
    if (died(coordinator)) send(agent, SIGTERM);  // nobody else will tell the workers
    const int64_t delay = died(coordinator) ? options.grace_ms : options.leave_ms;
    kill_after(delay, "workers were still there after the coordinator had ended");
  }

  void on_agent_end(const ProcessEnd& how) {
    note_end(agent, how);
    if (!coordinator.ended)
      kill_after(options.leave_ms, "the coordinator was still there after the agent had ended");
  }

  void show_output(bool last) {
    for (const std::string& line : coordinator.output->new_lines(50, last)) reporter.note(line);
    // The agent's own words repeat what the coordinator made of them, unless it could not.
    const bool heard = !died(coordinator) && agent.end.exit_code == coordinator.end.exit_code;
    if (!last || heard) return;
    for (const std::string& line : agent.output->new_lines(50, last)) reporter.note(line);
  }

  void refresh() {
    show_output(false);
    if (!coordinator.ended) {
      const auto status = ask_status(options.run_dir, kStatusTimeoutMs);
      if (status.is_ok()) reporter.status(parse_status(*status), loop.now_ms());
    }
    loop.call_after(reporter.is_terminal() ? kTerminalRefreshMs : kPlainRefreshMs,
                    [this] { refresh(); });
  }

  RunEnd run() {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    ::signal(SIGPIPE, SIG_IGN);  // a reader of our output that leaves must not end the training
    loop.on_signals({SIGCHLD, SIGTERM, SIGINT, SIGHUP}, [this](int s) { on_signal(s); });
    const Status started = start_children();
    if (!started.is_ok()) {
      trouble = started.message();
      kill_all();
      if (coordinator.pid == 0) return {exit_code(started), trouble, false};
    }
    refresh();
    loop.run();
    show_output(true);
    end.exit_code = final_code(started);
    end.trouble = final_trouble();
    return end;
  }

  int final_code(const Status& started) const {
    if (!started.is_ok()) return exit_code(started);
    if (died(coordinator) || !trouble.empty()) return kSoftwareError;
    if (coordinator.end.exit_code == 0 && died(agent)) return kSoftwareError;
    return coordinator.end.exit_code;
  }

  std::string final_trouble() const {
    if (deaths.empty() || trouble.empty()) return deaths + trouble;
    return deaths + "; " + trouble;
  }

  SupervisorOptions options;
  Reporter& reporter;
  rpc::AsioLoop loop;
  Child coordinator;
  Child agent;
  RunEnd end;
  bool killing = false;  // from here on a child's death is our doing
  std::string deaths;    // of children that were not told to end
  std::string trouble;
};

Supervisor::Supervisor(SupervisorOptions options, Reporter& reporter)
    : impl_(std::make_unique<Impl>(std::move(options), reporter)) {}

Supervisor::~Supervisor() = default;

RunEnd Supervisor::run() {
  return impl_->run();
}

}  // namespace lockstep
