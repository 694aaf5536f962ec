#include "comm/wire/exit_status.h"

namespace lockstep {

Status status_from_exit_code(int64_t code, const std::string& message) {
  if (code == 0) return Status::ok();
  for (const Code candidate :
       {Code::kUsage, Code::kBadData, Code::kNoInput, Code::kCheckpointed, Code::kConfig})
    if (exit_code(Status(candidate, "")) == code) return {candidate, message};
  return {Code::kInternal, message};
}

}  // namespace lockstep
