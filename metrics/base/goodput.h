// Goodput: the share of wall time in steps that survive.
//
//   goodput = (time in applied steps - time in steps that a rollback undid) / time since the start
//
// Evaluation, checkpoints, start, recovery, waiting and repeated steps all count against it.
//
// Thread-safety: one thread.
#pragma once

#include <cstdint>

namespace lockstep {

class Goodput {
 public:
  // `start_ns`: the start of the run, or of this part of it (monotonic).
  explicit Goodput(int64_t start_ns) : start_ns_(start_ns) {}

  void step_survives(double seconds) { useful_seconds_ += seconds; }
  void steps_undone(double seconds) { useful_seconds_ -= seconds; }

  // In [0, 1]; 0 at the start. A worker's clock times steps and this process's clock times the run.
  // The two may disagree by a little, so the ratio is capped at 1.
  double ratio(int64_t now_ns) const {
    const double wall_seconds = static_cast<double>(now_ns - start_ns_) / 1e9;
    if (wall_seconds <= 0 || useful_seconds_ <= 0) return 0;
    return useful_seconds_ < wall_seconds ? useful_seconds_ / wall_seconds : 1;
  }

 private:
  const int64_t start_ns_;
  double useful_seconds_ = 0;
};

}  // namespace lockstep
