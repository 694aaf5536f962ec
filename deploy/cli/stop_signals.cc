#include "deploy/cli/stop_signals.h"

namespace lockstep {
namespace {

constexpr int kHeld[] = {SIGINT, SIGTERM, SIGHUP};

}  // namespace

StopSignals::StopSignals() {
  sigset_t held;
  ::sigemptyset(&held);
  for (const int signal : kHeld) ::sigaddset(&held, signal);
  ::sigprocmask(SIG_BLOCK, &held, &before_);
}

bool StopSignals::is_pending() const {
  sigset_t pending;
  ::sigemptyset(&pending);
  ::sigpending(&pending);
  for (const int signal : kHeld)
    if (::sigismember(&pending, signal) == 1) return true;
  return false;
}

void StopSignals::release() {
  ::sigprocmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace lockstep
