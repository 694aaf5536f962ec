// A few threads that do the parts of one piece of work after another, and sleep in between.
//
// Thread-safety: run() from one thread at a time, which takes part.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "comm/base/status.h"

namespace lockstep::data {

// As many processors as this process may use.
uint32_t usable_processors();

class ThreadTeam {
 public:
  // `threads` with the caller of run(), at least 1; `name` as name_this_thread(). kInternal when
  // the machine gives no more threads.
  static Result<std::unique_ptr<ThreadTeam>> start(uint32_t threads, const char* name);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  uint32_t threads() const;

  // Between two calls of run(): that many from here on, at least 1. kInternal as start(); then
  // there are as many as could be had.
  Status resize(uint32_t threads);

  // part(thread, i) for every i < parts, thread < threads(), in about that order and several at a
  // time. Returns when all that were begun have ended. After one that is not ok no more are begun,
  // and of those that are not, the lowest is returned: the same one for any number of threads.
  using PartFn = std::function<Status(uint32_t thread, uint64_t i)>;
  Status run(uint64_t parts, const PartFn& part);

 private:
  struct Impl;
  explicit ThreadTeam(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::data
