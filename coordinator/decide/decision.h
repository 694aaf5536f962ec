// The result of decide().
#pragma once

#include <vector>

#include "coordinator/state/action.h"
#include "coordinator/state/reason.h"
#include "coordinator/state/state.h"

namespace lockstep::coordinator {

struct Decision {
  State state;
  std::vector<Action> actions;  // in this order
  Reason reason = Reason::kIgnored;
};

}  // namespace lockstep::coordinator
