// Whether a directory can be a run directory as this host sees it: what Lockstep does in it is
// done once, in a folder of the caller's.
//
// Thread-safety: free functions; each caller has a folder, or a prefix, of its own.
#pragma once

#include <string>

#include "comm/base/status.h"
#include "deploy/preflight/finding.h"

namespace lockstep::preflight {

// Writes, flushes, links, renames, locks and removes files `folder`/`name`.*; stops at the first
// that does not work and says which it was.
Finding check_operations(const std::string& folder, const std::string& name);

// Holds a lock (flock) on a file for as long as it lives.
class HeldLock {
 public:
  // kConfig when it cannot be had.
  static Result<HeldLock> take(const std::string& path);
  HeldLock(HeldLock&& other) noexcept;
  HeldLock& operator=(HeldLock&&) = delete;
  ~HeldLock();

 private:
  explicit HeldLock(int fd) : fd_(fd) {}
  int fd_;
};

// Of a file that somebody else holds a lock on: whether that is seen here.
Finding check_lock_is_seen(const std::string& path);

}  // namespace lockstep::preflight
