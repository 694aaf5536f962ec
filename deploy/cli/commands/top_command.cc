#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "deploy/cli/base/console.h"
#include "deploy/cli/commands/commands.h"
#include "deploy/cli/watch/run_reporter.h"
#include "deploy/cli/watch/run_source.h"
#include "deploy/cli/watch/top_frame.h"

namespace lockstep {
namespace {

constexpr int kFrameMs = 1'000;
constexpr int kPlainFrameMs = 5'000;
constexpr size_t kPlainHeight = 40;

struct TopArguments {
  std::string run_dir;
  bool once = false;
};

// The terminal as a screen of our own, with single keys instead of lines. It is given back as it
// was, however we end but by SIGKILL.
class FullScreen {
 public:
  FullScreen() {
    has_keys_ = ::tcgetattr(STDIN_FILENO, &before_) == 0;
    if (has_keys_) {
      termios keys = before_;
      keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
      ::tcsetattr(STDIN_FILENO, TCSANOW, &keys);
    }
    std::fputs("\x1b[?1049h\x1b[?25l", stdout);
  }
  ~FullScreen() {
    std::fputs("\x1b[?25h\x1b[?1049l", stdout);
    std::fflush(stdout);
    if (has_keys_) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  FullScreen(const FullScreen&) = delete;
  FullScreen& operator=(const FullScreen&) = delete;

 private:
  termios before_{};
  bool has_keys_ = false;
};

// The signals that end us or change the size, as a descriptor.
class Signals {
 public:
  Signals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGWINCH}) sigaddset(&set, signal);
    ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
    fd_ = ::signalfd(-1, &set, SFD_CLOEXEC);
  }
  ~Signals() { ::close(fd_); }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  int fd() const { return fd_; }
  // REQUIRES: one has come.
  bool is_end() const {
    signalfd_siginfo info{};
    return ::read(fd_, &info, sizeof info) != sizeof info || info.ssi_signo != SIGWINCH;
  }

 private:
  int fd_;
};

Result<TopData> ask(RunSource& source, size_t width) {
  TopData data;
  LOCKSTEP_ASSIGN_OR_RETURN(data.status, source.get_json("status", "members=200"));
  LOCKSTEP_ASSIGN_OR_RETURN(
      data.history,
      source.get_json("history", "points=" + std::to_string(std::max<size_t>(width, 20))));
  LOCKSTEP_ASSIGN_OR_RETURN(data.events, source.get_json("events", "limit=50"));
  return data;
}

// The frames to show, also while no coordinator answers: a run ends, or its coordinator restarts.
class Frames {
 public:
  explicit Frames(RunSource& source) : source_(source) {}

  // An error only if there never was an answer.
  Result<TopData> next(size_t width) {
    Result<TopData> data = ask(source_, width);
    is_old_ = !data.is_ok() && shown_.has_value();
    if (data.is_ok()) shown_ = *data;
    if (!is_old_) return data;
    TopData old = *shown_;
    old.note = "nobody answers at the moment: the run ends, or its coordinator starts again";
    return old;
  }
  // The last one was the end's, after which no other comes.
  bool is_last() const { return !is_old_ && !source_.is_live(); }

 private:
  RunSource& source_;
  std::optional<TopData> shown_;
  bool is_old_ = false;
};

TopStyle style_of(const Screen& screen) {
  TopStyle style{screen.width(), kPlainHeight, screen.unicode};
  winsize size{};
  if (screen.is_terminal && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0)
    style.height = size.ws_row;
  return style;
}

std::vector<std::string> frame_of(Frames& frames, const TopStyle& style) {
  const auto data = frames.next(style.width);
  if (data.is_ok()) return top_frame(*data, style);
  return {printable("the run is starting, or nothing of it is alive: no coordinator answers",
                    style.width - 1),
          printable(data.status().message(), style.width - 1)};
}

void draw(const std::vector<std::string>& lines) {
  std::fputs("\x1b[H", stdout);
  for (size_t i = 0; i < lines.size(); ++i)
    std::printf("%s%s\x1b[K", i > 0 ? "\r\n" : "", lines[i].c_str());
  std::fputs("\x1b[J", stdout);
  std::fflush(stdout);
}

// True when it is time to leave.
bool wait(const Signals& signals, bool has_keys, int ms) {
  pollfd fds[] = {{signals.fd(), POLLIN, 0}, {has_keys ? STDIN_FILENO : -1, POLLIN, 0}};
  if (::poll(fds, 2, ms) <= 0) return false;
  if ((fds[0].revents & POLLIN) != 0) return signals.is_end();
  char key = 'q';  // also when the terminal is gone
  return ::read(STDIN_FILENO, &key, 1) <= 0 || key == 'q' || key == 'Q';
}

Status show_live(RunSource& source, const Screen& screen) {
  const Signals signals;
  const FullScreen full;
  Frames frames(source);
  do {
    draw(frame_of(frames, style_of(screen)));
  } while (!wait(signals, ::isatty(STDIN_FILENO) == 1, kFrameMs));
  return Status::ok();
}

Status show_plain(RunSource& source, const Screen& screen, bool once) {
  const Signals signals;
  Frames frames(source);
  for (;;) {
    const TopStyle style = style_of({screen.out, /*is_terminal=*/false, screen.unicode});
    LOCKSTEP_ASSIGN_OR_RETURN(const TopData data, frames.next(style.width));
    for (const std::string& line : top_frame(data, style)) std::printf("%s\n", line.c_str());
    std::fflush(stdout);
    if (once || frames.is_last() || wait(signals, false, kPlainFrameMs)) return Status::ok();
    std::printf("\n");
  }
}

Status show(const TopArguments& arguments) {
  LOCKSTEP_ASSIGN_OR_RETURN(RunSource source, RunSource::open(arguments.run_dir));
  const Screen screen = Screen::of_stdout();
  if (screen.is_terminal && !arguments.once) return show_live(source, screen);
  return show_plain(source, screen, arguments.once);
}

constexpr char kTopExamples[] =
    "Shows ranks, phases, speed and loss of a run in the terminal; q leaves. Phases: d data wait,\n"
    "f forward, b backward, c communication, o optimizer, . other. Without a terminal it prints a\n"
    "frame every five seconds until the run ends.\n\n"
    "Examples:\n"
    "  lockstep top runs/first\n"
    "  lockstep top runs/first --once\n"
    "\n"
    "Exit codes: 0 ended by q, a signal or the end of the run, 66 no run there.";

}  // namespace

void add_top_command(CLI::App& app, Commands& commands) {
  auto* command = app.add_subcommand("top", "Watch a run in the terminal");
  const auto arguments = std::make_shared<TopArguments>();
  command->add_option("run-dir", arguments->run_dir, "Run directory")->required();
  command->add_flag("--once", arguments->once, "Print one frame, and end");
  command->footer(kTopExamples);
  commands[command] = [arguments] { return report(show(*arguments)); };
}

}  // namespace lockstep
