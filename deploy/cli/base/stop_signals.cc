#include "deploy/cli/base/stop_signals.h"

#include "comm/environment/inherited_signals.h"

namespace lockstep {
namespace {

constexpr int kHeld[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};

sigset_t held_signals() {
  sigset_t held;
  ::sigemptyset(&held);
  for (const int signal : kHeld)
    if (!is_left_ignored(signal)) ::sigaddset(&held, signal);
  return held;
}

}  // namespace

StopSignals::StopSignals() {
  const sigset_t held = held_signals();
  ::sigprocmask(SIG_BLOCK, &held, &before_);
}

bool StopSignals::is_pending() const {
  sigset_t pending;
  ::sigemptyset(&pending);
  ::sigpending(&pending);
  for (const int signal : kHeld)
    if (!is_left_ignored(signal) && ::sigismember(&pending, signal) == 1) return true;
  return false;
}

void StopSignals::hold() {
  const sigset_t held = held_signals();
  ::sigprocmask(SIG_BLOCK, &held, nullptr);
}

void StopSignals::release() {
  ::sigprocmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace lockstep
