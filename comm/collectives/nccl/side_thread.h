// A thread for what may block and nobody waits for: ending NCCL communicators.
//
// Thread-safety: run() from any thread. The destructor finishes what is left; a process that must
// not wait for it leaves with _exit.
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

  // In the order of the calls.
  void run(std::function<void()> work);

 private:
  void loop();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  bool is_ending_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace lockstep::nccl
