#include "deploy/agent/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "comm/base/file.h"
#include "comm/environment/blocked_signals.h"
#include "comm/environment/process_limit.h"

namespace lockstep {
namespace {

struct StartFailure {
  int error = 0;           // errno
  bool is_output = false;  // of the file that the output goes to, not of the program
};

// Everything between fork and exec: only calls that are safe in a child of a threaded process.
StartFailure become(const ProcessSpec& spec, char* const* argv, char* const* variables,
                    pid_t parent) {
  ::setpgid(0, 0);
  if (spec.parent_death_signal != 0) {
    if (::prctl(PR_SET_PDEATHSIG, spec.parent_death_signal) != 0) return {errno};
    if (::getppid() != parent) ::_exit(0);  // it died before the line above
  }
  // Signals since fork went to the group that this process has just left, and its parent has got
  // them. To ignore a signal drops it. A run that ignores hang-ups (nohup) has children that do,
  // too.
  for (const int signal :
       {SIGPIPE, SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT, SIGCHLD, SIGHUP}) {
    const bool was_ignored = ::signal(signal, SIG_IGN) == SIG_IGN;
    if (!was_ignored || signal != SIGHUP) ::signal(signal, SIG_DFL);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const int null = ::open("/dev/null", O_RDONLY);
  if (null < 0 || ::dup2(null, STDIN_FILENO) < 0) return {errno};
  if (!spec.output_path.empty()) {
    // A name in /proc is a link to a file that this program has open. Elsewhere another user may
    // have put a link in the place of a log.
    const int no_follow = spec.output_path.starts_with("/proc/") ? 0 : O_NOFOLLOW;
    const int out =
        ::open(spec.output_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | no_follow, 0644);
    if (out < 0 || ::dup2(out, STDOUT_FILENO) < 0 || ::dup2(out, STDERR_FILENO) < 0)
      return {errno, true};
  }
  ::close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
  const int kept = spec.kept_descriptor;
  if (kept >= 0 && ::fcntl(kept, F_SETFD, 0) != 0) return {errno};
  ::execve(argv[0], argv, variables);
  return {errno};
}

std::string_view name_of(std::string_view variable) {
  return variable.substr(0, variable.find('='));
}

// The child's variables: this process's own except those that are left out, and spec.env, which
// replaces variables of the same name. LD_PRELOAD begins with the library to preload, and goes on
// with the libraries that it named already.
std::vector<std::string> environment_of(const ProcessSpec& spec) {
  constexpr std::string_view kPreload = "LD_PRELOAD=";
  std::vector<std::string> all = spec.env;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string_view name = name_of(*at);
    if (spec.is_left_out != nullptr && spec.is_left_out(name)) continue;
    const auto is_replaced = [name](const std::string& variable) {
      return name_of(variable) == name;
    };
    if (std::none_of(spec.env.begin(), spec.env.end(), is_replaced)) all.emplace_back(*at);
  }
  if (spec.preload.empty()) return all;
  std::vector<std::string> variables;
  std::string preload = spec.preload;
  for (std::string& variable : all) {
    if (!variable.starts_with(kPreload))
      variables.push_back(std::move(variable));
    else if (variable.size() > kPreload.size())
      preload += ":" + variable.substr(kPreload.size());
  }
  variables.push_back(std::string(kPreload) + preload);
  return variables;
}

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

Result<pid_t> start_process(const ProcessSpec& spec) {
  const std::vector<char*> argv = pointers_to(spec.argv);
  const std::vector<std::string> environment = environment_of(spec);
  const std::vector<char*> variables = pointers_to(environment);
  int error_pipe[2];  // closed by a successful exec, else brings what failed
  if (::pipe2(error_pipe, O_CLOEXEC) != 0)
    return Status(Code::kInternal, "cannot make a pipe: " + errno_text(errno));
  const pid_t parent = ::getpid();
  // Until the child has dropped its parent's handlers they must not run there, where they would
  // write to the parent's loop. And the parent must read whole what the child says.
  const BlockedSignals blocked;
  const pid_t pid = ::fork();
  if (pid == 0) {
    const StartFailure failure = become(spec, argv.data(), variables.data(), parent);
    [[maybe_unused]] const ssize_t n = ::write(error_pipe[1], &failure, sizeof failure);
    ::_exit(127);
  }
  const int fork_error = errno;
  ::close(error_pipe[1]);
  StartFailure failure;
  const bool failed = pid > 0 && ::read(error_pipe[0], &failure, sizeof failure) > 0;
  ::close(error_pipe[0]);
  if (pid < 0)
    return Status(Code::kInternal, "cannot start a process for " + spec.argv[0] + ": " +
                                       errno_text(fork_error) + "; " + kRaiseProcessLimit);
  if (!failed) return pid;
  wait_for_end(pid);
  const std::string what = "cannot start " + spec.argv[0] + ": ";
  if (!failure.is_output) return Status(Code::kConfig, what + errno_text(failure.error));
  const bool is_refused =
      failure.error == EACCES || failure.error == EPERM || failure.error == EROFS;
  return Status(Code::kConfig,
                what + "cannot open " + spec.output_path +
                    " for its output: " + errno_text(failure.error) +
                    (is_refused ? "; give the user of this run the right to write there" : ""));
}

ProcessEnd ProcessEnd::from_wait_status(int wait_status) {
  if (WIFSIGNALED(wait_status)) return {-1, WTERMSIG(wait_status)};
  return {WEXITSTATUS(wait_status), 0};
}

bool ProcessEnd::is_death() const {
  for (const int code : {0, 64, 65, 66, 70, 75, 78})
    if (exit_code == code) return false;
  return true;
}

bool ProcessEnd::cannot_run() const {
  return exit_code == 126 || exit_code == 127;
}

std::string ProcessEnd::text() const {
  if (signal == 0) return "exited with code " + std::to_string(exit_code);
  return "was killed by signal " + std::to_string(signal) + " (" + ::strsignal(signal) + ")";
}

Reaped reap_one() {
  int status = 0;
  const pid_t pid = ::waitpid(-1, &status, WNOHANG);
  if (pid <= 0) return {};
  return {pid, ProcessEnd::from_wait_status(status)};
}

ProcessEnd wait_for_end(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return ProcessEnd::from_wait_status(status);
}

std::string sibling_program(const std::string& name) {
  char path[4096];
  const ssize_t n = ::readlink("/proc/self/exe", path, sizeof path);
  const std::string self(path, n > 0 ? static_cast<size_t>(n) : 0);
  return self.substr(0, self.rfind('/') + 1) + name;
}

int64_t end_of_file(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? info.st_size : 0;
}

std::string last_words(const std::string& path, int64_t begin, size_t limit_bytes) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "";
  const off_t size = ::lseek(fd, 0, SEEK_END);
  const auto limit = static_cast<off_t>(limit_bytes);
  if (size < begin) begin = 0;  // it was shortened (log_bound.h)
  const bool is_cut = size - begin > limit;
  const off_t start = is_cut ? size - limit : begin;
  std::string text(limit_bytes, '\0');
  const ssize_t n = ::pread(fd, text.data(), text.size(), start);
  ::close(fd);
  text.resize(n > 0 ? static_cast<size_t>(n) : 0);
  if (is_cut) text.erase(0, text.find('\n') + 1);  // the first line is not whole
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 && c != '\n') c = ' ';
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

std::string last_line(const std::string& words) {
  constexpr std::string_view kName = "lockstep: ";
  const std::string line = words.substr(words.rfind('\n') + 1);
  return line.starts_with(kName) ? line.substr(kName.size()) : line;
}

}  // namespace lockstep
