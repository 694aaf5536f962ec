// Of the processes of a machine that lack the same thing one makes it, and the others wait. Where
// the file system knows no locks, several make the same.
//
// Thread-safety: of an object none; any number of threads and processes with one each.
#pragma once

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <string>

#include "data/base/read_at.h"

namespace lockstep::data {

// Waits, and holds PATH.lock while it lives. REQUIRES: its directory is there.
class OneAtATime {
 public:
  explicit OneAtATime(const std::string& path)
      : fd_(::open((path + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
    while (fd_.get() >= 0 && ::flock(fd_.get(), LOCK_EX) != 0 && errno == EINTR) {
    }
  }

 private:
  const Descriptor fd_;  // the lock goes with it
};

}  // namespace lockstep::data
