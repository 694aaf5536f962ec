// The thread that reduces buckets while backward goes on.
//
// Tasks run in the order they were posted. After a task has failed, the rest are dropped until
// drain() has reported the error: a broken generation must not be used again.
//
// Thread-safety: post() and drain() from one thread, the owner's.
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
  ~CommLane();  // runs what was posted, then ends the thread
  CommLane(const CommLane&) = delete;
  CommLane& operator=(const CommLane&) = delete;

  void post(std::function<Status()> task);

  // Waits until all posted tasks have run; the first error, which is then forgotten.
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
