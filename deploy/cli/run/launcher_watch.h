// Ends a rank whose launcher was killed. mpirun ends its ranks when it ends, but not after a
// kill -9: they would train on as orphans, in a run directory that the next launch cannot take.
//
// Thread-safety: made on the main thread after StopSignals, before there are other threads.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>

namespace lockstep {

// The nearest ancestor of this process that is mpirun, mpiexec, or a daemon of theirs; 0: none.
pid_t launching_process();

// While it lives: when the process `launcher` ends, this process gets SIGTERM, as from the launcher
// itself, and `tell` is called on another thread. Does nothing for 0, or where the kernel has no
// pidfd_open().
class LauncherWatch {
 public:
  LauncherWatch(pid_t launcher, std::function<void()> tell);
  ~LauncherWatch();
  LauncherWatch(const LauncherWatch&) = delete;
  LauncherWatch& operator=(const LauncherWatch&) = delete;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
