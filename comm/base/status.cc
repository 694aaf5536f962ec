#include "comm/base/status.h"

namespace lockstep {

const char* code_name(Code code) {
  switch (code) {
    case Code::kOk:
      return "ok";
    case Code::kUsage:
      return "usage";
    case Code::kBadData:
      return "bad data";
    case Code::kNoInput:
      return "no input";
    case Code::kInternal:
      return "internal";
    case Code::kCheckpointed:
      return "checkpointed";
    case Code::kConfig:
      return "config";
    case Code::kAborted:
      return "aborted";
    case Code::kUnavailable:
      return "unavailable";
    case Code::kRefused:
      return "refused";
    case Code::kTimeout:
      return "timeout";
    case Code::kNoMemory:
      return "no memory";
    case Code::kRaised:
      return "raised";
  }
  return "unknown";
}

int exit_code(const Status& status) {
  switch (status.code()) {
    case Code::kOk:
      return 0;
    case Code::kUsage:
      return 64;
    case Code::kBadData:
      return 65;
    case Code::kNoInput:
      return 66;
    case Code::kCheckpointed:
      return 75;
    case Code::kConfig:
      return 78;
    default:
      return 70;
  }
}

}  // namespace lockstep
