// A few threads that share one piece of work after another, and sleep in between.
//
// Thread-safety: run() from one thread at a time; the calling thread takes part.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "comm/base/status.h"

namespace lockstep::data {

// The number of processors that this process may use.
uint32_t usable_processors();

class ThreadTeam {
 public:
  // `threads` counts the caller of run(), at least 1. `name`: see name_this_thread(). kInternal if
  // the machine gives no more threads.
  static Result<std::unique_ptr<ThreadTeam>> start(uint32_t threads, const char* name);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  uint32_t threads() const;

  // Changes the number of threads to `threads`, at least 1. Call it between two calls of run().
  // kInternal as for start(); the team then has as many threads as the machine gave.
  Status resize(uint32_t threads);

  // Calls part(thread, i) for every i < parts, with thread < threads(), in about that order and
  // several at a time. Returns when all begun parts have ended. After a part that is not ok, no
  // more parts begin. Returns the error of the lowest i that failed: the same one for any number of
  // threads.
  using PartFn = std::function<Status(uint32_t thread, uint64_t i)>;
  Status run(uint64_t parts, const PartFn& part);

 private:
  struct Impl;
  explicit ThreadTeam(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::data
