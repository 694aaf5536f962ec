// Several processes of a machine may lack the same thing: one process makes it, the others wait. On
// a file system without locks, several processes make the same thing.
//
// Thread-safety: one thread for each object. Any number of threads and processes, each with an
// object of its own.
#pragma once

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <string>

#include "comm/base/descriptors.h"

namespace lockstep::data {

// Waits for PATH.lock and holds it for its lifetime. REQUIRES: the directory of PATH exists.
class OneAtATime {
 public:
  explicit OneAtATime(const std::string& path)
      : fd_(::open((path + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
    while (fd_.get() >= 0 && ::flock(fd_.get(), LOCK_EX) != 0 && errno == EINTR) {
    }
  }

 private:
  const Descriptor fd_;  // closing it releases the lock
};

}  // namespace lockstep::data
