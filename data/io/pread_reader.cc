#include "data/io/pread_reader.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "comm/base/check.h"
#include "comm/base/thread_name.h"
#include "comm/environment/process_limit.h"
#include "data/base/quiet_signals.h"
#include "data/io/page_cache.h"

namespace lockstep::data {
namespace {

class PreadReader final : public Reader {
 public:
  ~PreadReader() override {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wanted_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  void start(uint32_t threads) {
    const QuietSignals quiet;
    for (uint32_t i = 0; i < threads; ++i)
      threads_.emplace_back([this] {
        name_this_thread("read");
        work();
      });
  }

  const char* name() const override { return "pread"; }
  // A thread that is done finds the next one waiting.
  uint32_t depth() const override { return 2 * static_cast<uint32_t>(threads_.size()); }
  uint32_t in_flight() const override { return in_flight_; }

  void submit(const Read& read) override {
    LOCKSTEP_CHECK(in_flight_ < depth(), "more reads in flight than there may be");
    ++in_flight_;
    auto status = read_if_cached(read.extent, read.out);
    const std::lock_guard lock(mutex_);
    if (status) {
      done_.push_back({read.tag, std::move(*status)});
      return;
    }
    queue_.push_back(read);
    wanted_.notify_one();
  }

  ReadDone wait() override {
    LOCKSTEP_CHECK(in_flight_ > 0, "nothing is in flight");
    std::unique_lock lock(mutex_);
    came_.wait(lock, [this] { return !done_.empty(); });
    ReadDone done = std::move(done_.front());
    done_.pop_front();
    --in_flight_;
    return done;
  }
  bool has_done() override {
    const std::lock_guard lock(mutex_);
    return !done_.empty();
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      wanted_.wait(lock, [this] { return stop_ || !queue_.empty(); });
      if (stop_) return;  // no caller wants the rest of the queue
      const Read read = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      Status status = read_extent(read.extent, read.out);
      lock.lock();
      done_.push_back({read.tag, std::move(status)});
      came_.notify_one();
    }
  }

  uint32_t in_flight_ = 0;  // the caller's
  std::mutex mutex_;
  std::condition_variable wanted_;  // something is in the queue, or stop
  std::condition_variable came_;    // something is done
  std::deque<Read> queue_;          // of these two, in_flight_ at most
  std::deque<ReadDone> done_;
  bool stop_ = false;
  std::vector<std::thread> threads_;  // last: they use all of the above
};

}  // namespace

Result<std::unique_ptr<Reader>> make_pread_reader(uint32_t threads) {
  auto reader = std::make_unique<PreadReader>();
  try {
    reader->start(threads);
  } catch (const std::system_error& error) {
    return Status(Code::kInternal, "cannot start " + std::to_string(threads) +
                                       " threads that read: " + error.what() + "; " +
                                       kRaiseProcessLimit);
  }
  return std::unique_ptr<Reader>(std::move(reader));
}

}  // namespace lockstep::data
