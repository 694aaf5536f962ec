#include "comm/environment/progress_line.h"

#include <unistd.h>

#include <cstdio>

#include "comm/base/clock.h"
#include "comm/base/text/number_text.h"
#include "comm/base/text/printable.h"

namespace lockstep {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kSilentNs = 2 * kSecondNs;

int64_t now_ns() {
  return SystemClock().monotonic_ns();
}

}  // namespace

ProgressLine::ProgressLine()
    : is_terminal_(::isatty(STDERR_FILENO) == 1), next_ns_(now_ns() + kSilentNs) {}

ProgressLine::~ProgressLine() {
  if (is_begun_ && is_terminal_) std::fputs("\n", stderr);
}

void ProgressLine::show(const std::string& what, uint64_t done, uint64_t total) {
  if (now_ns() < next_ns_) return;
  next_ns_ = now_ns() + (is_terminal_ ? kSecondNs / 5 : 20 * kSecondNs);
  is_begun_ = true;
  const std::string share =
      total == 0 ? grouped(done)
                 : percent(static_cast<double>(done) / static_cast<double>(total), 0);
  std::fprintf(stderr, is_terminal_ ? "\r%s %s \x1b[K" : "%s %s\n", printable(what).c_str(),
               share.c_str());
}

}  // namespace lockstep
