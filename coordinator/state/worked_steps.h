// Steps [first, last) of a generation that a member applied itself and can therefore report.
#pragma once

#include "comm/base/ids.h"

namespace lockstep::coordinator {

struct WorkedSteps {
  Generation generation = 0;
  Step first = 0;
  Step last = 0;
  bool operator==(const WorkedSteps&) const = default;
};

}  // namespace lockstep::coordinator
