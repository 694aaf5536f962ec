#include "deploy/cli/base/console.h"

#include <cstdio>

namespace lockstep {

int report(const Status& status) {
  if (!status.is_ok()) std::fprintf(stderr, "lockstep: %s\n", status.message().c_str());
  return exit_code(status);
}

}  // namespace lockstep
