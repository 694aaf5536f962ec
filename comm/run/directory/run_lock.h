// The lock of a journal.
//
// Thread-safety: one thread; RunLock holds its lock until destroyed or the process dies.
#pragma once

#include <memory>
#include <string>

#include "comm/base/status.h"

namespace lockstep {

// A file next to a journal. The living coordinator that writes the journal holds it with flock
// (claim.h). Its content is the holder's pid.
class RunLock {
 public:
  // kUsage, with the pid, if another process holds it.
  static Result<std::unique_ptr<RunLock>> take(const std::string& journal);
  // For tools that read the files of an ended coordinator. Several tools may hold it at a time, but
  // not while a coordinator lives. Writes nothing.
  static Result<std::unique_ptr<RunLock>> take_to_read(const std::string& journal);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  explicit RunLock(int fd) : fd_(fd) {}
  int fd_;  // -1: the file is lost
};

// kConfig: the file system does not lock; errno says why. A lock that another process holds is
// another error.
Status cannot_lock(const std::string& path);

// The absolute form of a path that exists.
Result<std::string> absolute_path(const std::string& path);

}  // namespace lockstep
