#include "worker/engine/comm_lane.h"

#include <utility>

namespace lockstep {

CommLane::CommLane() : thread_([this] { run(); }) {}

CommLane::~CommLane() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void CommLane::post(std::function<Status()> task) {
  std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
  changed_.notify_all();
}

Status CommLane::drain() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return tasks_.empty() && !running_task_; });
  return std::exchange(error_, Status::ok());
}

void CommLane::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ending_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    auto task = std::move(tasks_.front());
    tasks_.pop_front();
    if (error_.is_ok()) {
      running_task_ = true;
      lock.unlock();
      Status status = task();
      lock.lock();
      running_task_ = false;
      error_ = std::move(status);
    }
    changed_.notify_all();
  }
}

}  // namespace lockstep
