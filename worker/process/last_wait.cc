#include "worker/process/last_wait.h"

#include <unistd.h>

#include <cstdio>

namespace lockstep {

void wait_or_leave(std::future<void>& training_over, std::chrono::milliseconds may_take, int code) {
  if (training_over.wait_for(may_take) == std::future_status::ready) return;
  end_process(code);
}

void end_process(int code) {
  std::fflush(nullptr);
  ::_exit(code);
}

}  // namespace lockstep
