#include "comm/collectives/nccl/side_thread.h"

#include <utility>

namespace lockstep::nccl {

SideThread::SideThread(std::function<void()> first)
    : thread_([this, first = std::move(first)] { loop(first); }) {}

SideThread::~SideThread() {
  {
    std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void SideThread::run(std::function<void()> work) {
  {
    std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
  }
  changed_.notify_one();
}

bool SideThread::is_idle() const {
  std::lock_guard lock(mutex_);
  return work_.empty();
}

void SideThread::loop(const std::function<void()>& first) {
  first();
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return is_ending_ || !work_.empty(); });
    if (work_.empty()) return;
    std::function<void()> work = std::move(work_.front());
    lock.unlock();
    work();
    work = nullptr;  // what it holds goes before it counts as done
    lock.lock();
    work_.pop_front();
  }
}

}  // namespace lockstep::nccl
