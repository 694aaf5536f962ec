// Distinguishes a person who asks a second time to stop from a tool that asks twice: `timeout`
// signals its child and then the child's group, and a shell's trap passes on a signal that the
// terminal has sent already.
//
// Thread-safety: a value; one thread.
#pragma once

#include <cstdint>
#include <optional>

namespace lockstep {

class StopSignalWatch {
 public:
  // A signal that follows the first one sooner is its echo.
  static constexpr int64_t kEchoMs = 1'000;

  // Call it for every stop signal. True if a person asks again. `now_ms` is monotonic.
  bool asks_again(int64_t now_ms) {
    if (!first_ms_) first_ms_ = now_ms;
    return now_ms - *first_ms_ >= kEchoMs;
  }

 private:
  std::optional<int64_t> first_ms_;
};

}  // namespace lockstep
