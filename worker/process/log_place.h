// Where this worker stands, for the lines of its log (comm/base/json_logger.h). The training
// thread sets it; every thread logs.
//
// Thread-safety: all calls from any thread. The three values are read one by one: a line written
// during a change may mix old and new ones.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "comm/base/ids.h"
#include "comm/base/json_logger.h"

namespace lockstep {

class LogPlace {
 public:
  explicit LogPlace(std::string run) : run_(std::move(run)) {}

  void started(Generation generation, uint32_t rank) {
    generation_ = generation;
    rank_ = rank;
  }
  void applied(Step steps) { step_ = static_cast<int64_t>(steps); }

  LogContext context() const {
    LogContext context{run_, {}, generation_, {}};
    if (const int64_t rank = rank_; rank >= 0) context.rank = static_cast<uint32_t>(rank);
    if (const int64_t step = step_; step >= 0) context.step = static_cast<uint64_t>(step);
    return context;
  }

 private:
  const std::string run_;
  std::atomic<Generation> generation_{0};
  std::atomic<int64_t> rank_{-1};  // none yet
  std::atomic<int64_t> step_{-1};  // none yet
};

}  // namespace lockstep
