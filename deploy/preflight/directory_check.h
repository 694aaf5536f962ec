// Checks whether this host can use a directory as a run directory: does once, in a folder of the
// caller's, what Lockstep does in a run directory.
//
// Thread-safety: free functions; each caller has a folder, or a prefix, of its own.
#pragma once

#include <string>

#include "comm/base/status.h"
#include "deploy/preflight/finding.h"

namespace lockstep::preflight {

// Writes, flushes, links, renames, locks and removes files `folder`/`name`.*. Stops at the first
// operation that fails, and names it.
Finding check_operations(const std::string& folder, const std::string& name);

// Holds a lock (flock) on a file for as long as it lives.
class HeldLock {
 public:
  // kConfig if the lock cannot be taken.
  static Result<HeldLock> take(const std::string& path);
  HeldLock(HeldLock&& other) noexcept;
  HeldLock& operator=(HeldLock&&) = delete;
  ~HeldLock();

 private:
  explicit HeldLock(int fd) : fd_(fd) {}
  int fd_;
};

// Checks that this host sees the lock that another process holds on a file.
Finding check_lock_is_seen(const std::string& path);

}  // namespace lockstep::preflight
