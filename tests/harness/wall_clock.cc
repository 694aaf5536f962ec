// Preloaded into the processes of a run. Their wall clock is wrong by the seconds that the file
// LOCKSTEP_TEST_CLOCK holds as text, and steps when that file changes. Without the file it is
// right. The monotonic clock stays right, since no program can set it.
#include <sys/time.h>

#include <cstdint>
#include <cstdlib>
#include <ctime>

#include "tests/harness/preload.h"

using lockstep::testing::open_really;
using lockstep::testing::real;

namespace {

int64_t wrong_by_s() {
  const char* const file = std::getenv("LOCKSTEP_TEST_CLOCK");
  const int fd = file == nullptr ? -1 : open_really(file, O_RDONLY);
  if (fd < 0) return 0;
  char text[24] = {};
  const ssize_t bytes = ::pread(fd, text, sizeof text - 1, 0);
  ::close(fd);
  return bytes > 0 ? std::strtoll(text, nullptr, 10) : 0;
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, struct timespec* now) noexcept {
  static const auto function = real<int (*)(clockid_t, struct timespec*)>("clock_gettime");
  const int code = function(clock, now);
  if (code == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
    now->tv_sec += wrong_by_s();
  return code;
}

int gettimeofday(struct timeval* now, void* zone) noexcept {
  static const auto function = real<int (*)(struct timeval*, void*)>("gettimeofday");
  const int code = function(now, zone);
  if (code == 0) now->tv_sec += wrong_by_s();
  return code;
}

time_t time(time_t* now) noexcept {
  static const auto function = real<time_t (*)(time_t*)>("time");
  const time_t told = function(nullptr) + wrong_by_s();
  if (now != nullptr) *now = told;
  return told;
}

}  // extern "C"
