// Orders from the loop's thread to the training thread. The newest start wins: an older generation
// that was never begun is of no interest any more.
//
// Thread-safety: put(), end() and acknowledge() from any thread; the waits from the training
// thread.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "comm/base/ids.h"
#include "comm/wire/control.pb.h"

namespace lockstep {

struct StartOrder {
  Generation generation = 0;
  MemberId member = 0;  // this worker
  std::string run_id;
  wire::Start start;
};

class Mailbox {
 public:
  void put(StartOrder order) {
    std::lock_guard lock(mutex_);
    order_ = std::move(order);
    changed_.notify_all();
  }

  void end() {
    std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }

  // A checkpoint is in the journal.
  void acknowledge(std::string checkpoint) {
    std::lock_guard lock(mutex_);
    acknowledged_ = std::move(checkpoint);
    changed_.notify_all();
  }

  // Waits for the next start; nothing: it is over.
  std::optional<StartOrder> next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ended_ || order_; });
    if (ended_) return std::nullopt;
    return std::exchange(order_, std::nullopt);
  }

  // Waits until `checkpoint` is in the journal; false: it is over, or another start has come.
  bool wait_acknowledged(const std::string& checkpoint) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ended_ || order_ || acknowledged_ == checkpoint; });
    return acknowledged_ == checkpoint;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  std::optional<StartOrder> order_;
  std::string acknowledged_;  // the newest
};

}  // namespace lockstep
