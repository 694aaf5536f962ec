// Time behind a seam: production reads the machine's clocks, the simulator reads its own.
//
// Deadlines and leases use monotonic time only. Wall time is for people and file names.
//
// Thread-safety: all calls from any thread.
#pragma once

#include <cstdint>

namespace lockstep {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual int64_t monotonic_ns() const = 0;
  virtual int64_t wall_ms() const = 0;  // since 1970-01-01 UTC

  int64_t monotonic_ms() const { return monotonic_ns() / 1'000'000; }
};

class SystemClock final : public Clock {
 public:
  int64_t monotonic_ns() const override;
  int64_t wall_ms() const override;
};

}  // namespace lockstep
