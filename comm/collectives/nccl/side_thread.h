// A thread for work that may block: ending NCCL communicators.
//
// Thread-safety: run() and is_idle() from any thread. The destructor finishes the remaining work,
// and blocks as long as the work does. A process that must not wait for it leaves with _exit
// (worker/torch/process/main.cc).
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace lockstep::nccl {

class SideThread {
 public:
  // `first` runs on the thread before all work: a new thread has no device yet, and CUDA would take
  // device 0 for it, with a context there for every rank of the node.
  explicit SideThread(std::function<void()> first);
  ~SideThread();

  // Runs work in the order of the calls.
  void run(std::function<void()> work);

  // True if all work has been done.
  bool is_idle() const;

 private:
  void loop(const std::function<void()>& first);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;  // the front is being done
  bool is_ending_ = false;
  std::thread thread_;  // last, because it uses the others
};

}  // namespace lockstep::nccl
