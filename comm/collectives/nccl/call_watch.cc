#include "comm/collectives/nccl/call_watch.h"

#include <chrono>
#include <string>
#include <utility>

namespace lockstep::nccl {

CallWatch::Call::Call(CallWatch& watch, const char* what) : watch_(watch) {
  watch_.what_.store(what, std::memory_order_relaxed);
  watch_.turn_.fetch_add(1, std::memory_order_release);
}

CallWatch::Call::~Call() {
  watch_.turn_.fetch_add(1, std::memory_order_release);
}

void CallWatch::begin_generation(std::function<bool()> is_closed) {
  std::lock_guard lock(mutex_);
  is_closed_ = std::move(is_closed);
}

bool CallWatch::is_closed() {
  std::lock_guard lock(mutex_);
  return is_closed_ && is_closed_();
}

void CallWatch::look() {
  const uint64_t turn = turn_.load(std::memory_order_acquire);
  if (turn != seen_ || turn % 2 == 0 || !is_closed()) {
    seen_ = turn;
    looks_ = 0;
    return;
  }
  if (++looks_ < options_.looks || std::exchange(is_told_, true)) return;
  options_.told({Code::kInternal, std::string(what_.load(std::memory_order_relaxed)) +
                                      ": NCCL or the GPU's driver has not returned for " +
                                      std::to_string(looks_ * limits::kNcclLookMs) +
                                      " ms since the generation was closed; this worker has to "
                                      "start again"});
}

WatchThread::WatchThread(std::shared_ptr<CallWatch> watch, bool is_on) : watch_(std::move(watch)) {
  if (is_on) thread_ = std::thread([this] { loop(); });
}

WatchThread::~WatchThread() {
  {
    std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void WatchThread::loop() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, std::chrono::milliseconds(limits::kNcclLookMs),
                            [this] { return is_ending_; }))
    watch_->look();
}

}  // namespace lockstep::nccl
