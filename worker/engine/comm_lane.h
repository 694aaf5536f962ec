// The thread that reduces buckets while backward goes on.
//
// Tasks run in the order of post(). After a task fails, the lane drops the remaining tasks until
// drain() has reported the error, because nothing may use a broken generation again.
//
// Thread-safety: only the owner's thread calls post() and drain().
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "comm/base/status.h"

namespace lockstep {

class CommLane {
 public:
  CommLane();
  ~CommLane();  // runs the posted tasks, then ends the thread
  CommLane(const CommLane&) = delete;
  CommLane& operator=(const CommLane&) = delete;

  void post(std::function<Status()> task);

  // Waits until all posted tasks have run. Returns the first error, and forgets it.
  Status drain();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<Status()>> tasks_;
  Status error_;
  bool running_task_ = false;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace lockstep
