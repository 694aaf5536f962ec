// Time behind a seam: production reads the machine's clocks, the simulator reads its own.
//
// Deadlines and leases use monotonic time only. Wall time is for people and file names.
//
// Thread-safety: all calls from any thread.
#pragma once

#include <cstdint>

namespace lockstep {

// One moment on both clocks. People and NTP set the wall clock, so only the monotonic one tells how
// long something lasted.
struct BothClocks {
  // Clocks that agree, as in tests.
  BothClocks(int64_t ms = 0) : wall_ms(ms), monotonic_ms(ms) {}  // NOLINT
  BothClocks(int64_t wall, int64_t monotonic) : wall_ms(wall), monotonic_ms(monotonic) {}
  int64_t wall_ms;
  int64_t monotonic_ms;  // of this process
};

class Clock {
 public:
  virtual ~Clock() = default;
  virtual int64_t monotonic_ns() const = 0;
  virtual int64_t wall_ms() const = 0;  // since 1970-01-01 UTC

  int64_t monotonic_ms() const { return monotonic_ns() / 1'000'000; }
  BothClocks both() const { return {wall_ms(), monotonic_ms()}; }
};

class SystemClock final : public Clock {
 public:
  int64_t monotonic_ns() const override;
  int64_t wall_ms() const override;
};

}  // namespace lockstep
