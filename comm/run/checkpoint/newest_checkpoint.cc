#include "comm/run/checkpoint/newest_checkpoint.h"

#include <filesystem>
#include <system_error>

namespace lockstep {

Result<CheckpointInfo> newest_checkpoint(const std::string& dir) {
  std::string last;
  while (true) {
    LOCKSTEP_ASSIGN_OR_RETURN(const auto found, list_checkpoints(dir));
    if (found.empty())
      return Status(Code::kNoInput,
                    "there is no checkpoint in " + dir +
                        "; a run writes one every checkpoint.every_steps and at its end");
    const std::string path = found.back().path;
    auto verified = verify_checkpoint(path);
    std::error_code error;
    if (verified.is_ok() || path == last || std::filesystem::exists(path, error)) return verified;
    last = path;  // deleted meanwhile: there are newer ones
  }
}

}  // namespace lockstep
