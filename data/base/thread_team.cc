#include "data/base/thread_team.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <limits>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "comm/base/thread_name.h"
#include "comm/environment/process_limit.h"
#include "comm/environment/usable_cores.h"
#include "data/base/quiet_signals.h"

namespace lockstep::data {

uint32_t usable_processors() {
  return usable_cores();
}

struct ThreadTeam::Impl {
  ~Impl() { keep(1); }

  Status grow(uint32_t threads);
  void keep(uint32_t threads);
  void help(uint32_t thread, uint64_t seen);
  void take_parts(uint32_t thread);

  std::mutex mutex;
  std::condition_variable begun;  // a piece of work, or fewer threads
  std::condition_variable ended;  // the last helper is done with it
  uint64_t pieces = 0;            // begun so far
  uint32_t busy = 0;              // helpers that are not done with the last one
  uint32_t kept = 1;              // the others end

  // The piece of work in hand.
  const PartFn* part = nullptr;
  uint64_t parts = 0;
  std::atomic<uint64_t> next{0};
  uint64_t failed = 0;  // under mutex: the lowest that is not ok
  Status failure;

  const char* name = "";
  std::vector<std::thread> helpers;  // last: they use all of the above
};

Status ThreadTeam::Impl::grow(uint32_t threads) {
  {
    const std::lock_guard lock(mutex);
    kept = threads;
  }
  const QuietSignals quiet;
  try {
    while (helpers.size() + 1 < threads) {
      const auto thread = static_cast<uint32_t>(helpers.size()) + 1;
      helpers.emplace_back([this, thread, seen = pieces] {
        name_this_thread(name);
        help(thread, seen);
      });
    }
  } catch (const std::system_error& error) {
    return Status(Code::kInternal, "cannot start " + std::to_string(threads) +
                                       " threads: " + error.what() + "; lower data.threads, or " +
                                       kRaiseProcessLimit);
  }
  return Status::ok();
}

void ThreadTeam::Impl::keep(uint32_t threads) {
  {
    const std::lock_guard lock(mutex);
    kept = threads;
  }
  begun.notify_all();
  while (helpers.size() + 1 > threads) {
    helpers.back().join();
    helpers.pop_back();
  }
}

void ThreadTeam::Impl::take_parts(uint32_t thread) {
  for (uint64_t i = next.fetch_add(1); i < parts; i = next.fetch_add(1)) {
    Status status = (*part)(thread, i);
    if (status.is_ok()) continue;
    const std::lock_guard lock(mutex);
    if (i < failed) {
      failed = i;
      failure = std::move(status);
    }
    next.store(parts);  // no thread begins another part
    return;
  }
}

// `seen`: pieces that began before this helper did.
void ThreadTeam::Impl::help(uint32_t thread, uint64_t seen) {
  std::unique_lock lock(mutex);
  while (true) {
    begun.wait(lock, [&] { return thread >= kept || pieces > seen; });
    if (thread >= kept) return;
    seen = pieces;
    lock.unlock();
    take_parts(thread);
    lock.lock();
    if (--busy == 0) ended.notify_one();
  }
}

ThreadTeam::ThreadTeam(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ThreadTeam::~ThreadTeam() = default;

Result<std::unique_ptr<ThreadTeam>> ThreadTeam::start(uint32_t threads, const char* name) {
  auto impl = std::make_unique<Impl>();
  impl->name = name;
  LOCKSTEP_RETURN_IF_ERROR(impl->grow(threads));
  return std::unique_ptr<ThreadTeam>(new ThreadTeam(std::move(impl)));
}

uint32_t ThreadTeam::threads() const {
  return static_cast<uint32_t>(impl_->helpers.size()) + 1;
}

Status ThreadTeam::resize(uint32_t threads) {
  threads = std::max(threads, 1U);
  if (threads < this->threads()) impl_->keep(threads);
  return impl_->grow(threads);
}

Status ThreadTeam::run(uint64_t parts, const PartFn& part) {
  Impl& team = *impl_;
  {
    const std::lock_guard lock(team.mutex);
    team.part = &part;
    team.parts = parts;
    team.next.store(0);
    team.failed = std::numeric_limits<uint64_t>::max();
    team.failure = Status::ok();
    team.busy = static_cast<uint32_t>(team.helpers.size());
    ++team.pieces;
  }
  team.begun.notify_all();
  team.take_parts(0);
  std::unique_lock lock(team.mutex);
  team.ended.wait(lock, [&] { return team.busy == 0; });
  return std::move(team.failure);
}

}  // namespace lockstep::data
