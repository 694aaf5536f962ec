// A thread for work that may block and that nobody waits for: ending NCCL communicators.
//
// Thread-safety: run() from any thread. The destructor finishes the remaining work. A process that
// must not wait for it leaves with _exit.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace lockstep::nccl {

class SideThread {
 public:
  SideThread();
  ~SideThread();

  // Runs work in the order of the calls.
  void run(std::function<void()> work);

 private:
  void loop();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  bool is_ending_ = false;
  std::thread thread_;  // last, because it uses the others
};

}  // namespace lockstep::nccl
