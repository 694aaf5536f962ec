#include "deploy/cli/watch/run_reporter.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "comm/base/text/printable.h"
#include "deploy/cli/base/text.h"
#include "deploy/cli/watch/live_line.h"

namespace lockstep {
namespace {

constexpr int64_t kPlainLineEveryMs = 10'000;
constexpr uint64_t kPlainLinesARun = 20;  // one for each 5 %

bool locale_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    return std::strstr(value, "UTF-8") != nullptr || std::strstr(value, "utf8") != nullptr;
  }
  return false;
}

// A run may evaluate more often than it is asked how it is.
std::string left_out_text(uint64_t evaluations, uint64_t told) {
  if (evaluations <= told + 1) return "";
  return " (" + plural(evaluations - told - 1, "evaluation") +
         " before it not shown; lockstep report has all)";
}

}  // namespace

Screen Screen::of_stdout() {
  const char* term = std::getenv("TERM");
  const bool dumb = term == nullptr || std::strcmp(term, "dumb") == 0;
  return {stdout, ::isatty(STDOUT_FILENO) == 1 && !dumb, locale_is_utf8()};
}

Screen Screen::of_launched() {
  Screen screen = of_stdout();
  const std::string parents = "/proc/" + std::to_string(::getppid()) + "/fd/1";
  char target[256] = {};
  const ssize_t n = ::readlink(parents.c_str(), target, sizeof target - 1);
  const std::string_view name(target, n > 0 ? static_cast<size_t>(n) : 0);
  screen.is_terminal =
      screen.is_terminal && (name.starts_with("/dev/pts/") || name.starts_with("/dev/tty"));
  return screen;
}

size_t Screen::width() const {
  winsize size{};
  if (::ioctl(::fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

void Reporter::clear_line() {
  if (!line_drawn_) return;
  std::fputs("\r\x1b[K", screen_.out);
  std::fflush(screen_.out);
  line_drawn_ = false;
  drawn_.clear();
}

void Reporter::note(const std::string& text) {
  const std::string again = drawn_;
  clear_line();
  std::fprintf(screen_.out, "%s\n", printable(text).c_str());
  std::fflush(screen_.out);
  if (!again.empty()) passing(again);
}

void Reporter::passing(const std::string& text) {
  if (!screen_.is_terminal || text == drawn_) return;
  std::fprintf(screen_.out, "\r%s\x1b[K", printable(text).c_str());
  std::fflush(screen_.out);
  line_drawn_ = true;
  drawn_ = text;
}

bool Reporter::plain_line_is_due(const RunStatus& status, int64_t now_ms) const {
  if (status.state != last_state_ || status.generation != last_generation_) return true;
  if (status.step == last_step_) return false;
  if (now_ms - last_ms_ >= kPlainLineEveryMs) return true;
  const uint64_t part = std::max<uint64_t>(1, status.total_steps / kPlainLinesARun);
  return status.total_steps > 0 && status.step / part != last_step_ / part;
}

void Reporter::batch_found(const RunStatus& status) {
  if (!awaits_batch_ || status.global_batch == 0) return;
  awaits_batch_ = false;
  note(batch_line(status));
}

void Reporter::status(const RunStatus& status, int64_t now_ms) {
  batch_found(status);
  if (status.eval && status.eval->step > last_eval_step_) {
    last_eval_step_ = status.eval->step;
    // An evaluation that is there before training begins comes from an earlier start.
    const bool is_news = status.state != "gathering" && status.state != "prepared";
    if (is_news)
      note(eval_line(*status.eval, status.epochs, status.steps_per_epoch) +
           left_out_text(status.evaluations, told_evaluations_));
    told_evaluations_ = status.evaluations;
  }
  if (screen_.is_terminal) {
    passing(live_line(status, {screen_.width(), screen_.unicode}));
    return;
  }
  if (!plain_line_is_due(status, now_ms)) return;
  note(plain_line(status));
  last_ms_ = now_ms;
  last_step_ = status.step;
  last_state_ = status.state;
  last_generation_ = status.generation;
}

}  // namespace lockstep
