// A directory for temporary files. It is removed with this object, or when the process ends in any
// way: a child process waits for the end and removes the directory. If SIGKILL ends both processes,
// the directory stays.
//
// Thread-safety: made on the main thread before there are others, since it forks.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "comm/base/status.h"

namespace lockstep {

class ScratchDirectory {
 public:
  // Makes PREFIX and six letters in the directory for temporary files. kConfig if there is no room.
  static Result<std::unique_ptr<ScratchDirectory>> create(const std::string& prefix);
  ~ScratchDirectory();  // returns when the directory is gone
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  ScratchDirectory(std::string path, pid_t remover, int alive);

  const std::string path_;
  const pid_t remover_;
  const int alive_;  // the end of a pipe that the remover waits for
};

}  // namespace lockstep
