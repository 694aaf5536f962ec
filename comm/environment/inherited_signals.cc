#include "comm/environment/inherited_signals.h"

#include <signal.h>

namespace lockstep {

bool is_left_ignored(int signal) {
  if (signal != SIGHUP && signal != SIGINT && signal != SIGTSTP) return false;
  struct sigaction now {};
  return ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

}  // namespace lockstep
