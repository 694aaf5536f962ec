#include "deploy/cli/base/console.h"

#include <cstdio>

#include "comm/environment/standard_streams.h"

namespace lockstep {

int report(const Status& status) {
  if (!status.is_ok()) print_error("lockstep: %s\n", status.message().c_str());
  return exit_code(status);
}

int finish_output(int code) {
  const int lost = report(finish_stdout());
  return code == 0 ? lost : code;
}

}  // namespace lockstep
