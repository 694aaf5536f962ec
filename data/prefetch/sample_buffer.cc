#include "data/prefetch/sample_buffer.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "comm/base/check.h"
#include "comm/base/limits.h"
#include "comm/base/thread_name.h"
#include "comm/environment/process_limit.h"
#include "data/base/machine_memory.h"
#include "data/base/quiet_signals.h"
#include "data/dataset/dataset.h"
#include "data/io/byte_ring.h"
#include "data/io/reader_trial.h"
#include "data/prefetch/prefetch_policy.h"

namespace lockstep::data {
namespace {

// Finished reads that are handed over at once: waking a waiting thread for each of them costs as
// much as reading a small sample.
constexpr size_t kAtOnce = 8;

int64_t now_ns() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

struct SampleBuffer::Impl {
  Impl(const Dataset& data, OrderFn in, PrefetchPolicy& by, ByteRing bytes, ReaderTrial readers)
      : dataset(data),
        order(std::move(in)),
        policy(by),
        ring(std::move(bytes)),
        trial(std::move(readers)),
        entries(limits::kReadAheadSamples) {}

  // A sample on its way.
  struct Entry {
    enum class State { kComing, kReady, kFailed, kNotAhead, kGone };
    State state = State::kComing;
    uint64_t sample = 0;
    std::optional<uint64_t> place;  // in the ring; of kNotAhead none
    uint64_t bytes = 0;
    Status failure;
  };
  struct Wanted {
    uint64_t sample = 0;
    std::optional<FileExtent> extent;
  };

  void run();
  bool submit_next();
  void come();
  void look_who_is_fastest();
  bool sleep_until_there_is_room();
  Entry& entry(uint64_t n) { return entries[n % entries.size()]; }

  const Dataset& dataset;
  const OrderFn order;
  PrefetchPolicy& policy;

  // The thread's own.
  ByteRing ring;  // its book under `mutex`
  ReaderTrial trial;
  std::unique_ptr<Reader> reader;  // null: the trial's, which goes on
  std::optional<Wanted> wanted;    // next in the order, and there was no room for it
  bool at_end = false;
  std::vector<ReadDone> came;  // not handed over yet

  std::mutex mutex;
  std::condition_variable room;   // a sample was given back, or stop
  std::condition_variable ready;  // one has come, or stop
  std::vector<Entry> entries;     // of [oldest, planned), by number
  uint64_t planned = 0;
  uint64_t oldest = 0;  // not gone
  uint32_t takers = 0;  // that wait
  bool stopped = false;

  std::thread thread;  // last: it uses all of the above
};

void SampleBuffer::Impl::run() {
  while (true) {
    look_who_is_fastest();
    Reader& by = reader != nullptr ? *reader : trial.reader();
    const bool may_submit =
        by.in_flight() < by.depth() && (reader != nullptr || !trial.turn_is_full());
    const int64_t begin = now_ns();
    if (may_submit && submit_next()) {
      if (reader == nullptr) trial.spent(now_ns() - begin);
      continue;
    }
    {
      const std::lock_guard lock(mutex);
      if (stopped) return;
    }
    if (by.in_flight() > 0) {
      came.clear();
      do came.push_back(by.wait());
      while (came.size() < kAtOnce && by.has_done() && by.in_flight() > 0);
      if (reader == nullptr) trial.spent(now_ns() - begin);
      come();
    } else if (!sleep_until_there_is_room()) {
      return;
    }
  }
}

// Acts only between two turns, when nothing is in flight.
void SampleBuffer::Impl::look_who_is_fastest() {
  if (reader != nullptr) return;
  if (!trial.is_over()) {
    if (!trial.turn_is_full() || trial.reader().in_flight() > 0) return;
    trial.end_turn();
    if (!trial.is_over()) return;
  }
  reader = trial.winner();
  policy.chose(*reader, trial.figures());
}

// False if there is no room for the next sample, or no next sample.
bool SampleBuffer::Impl::submit_next() {
  if (!wanted && !at_end) {
    const auto sample = order();
    at_end = !sample;
    if (sample) wanted = Wanted{*sample, dataset.extent(*sample)};
  }
  if (!wanted) return false;
  Read read;
  {
    const std::lock_guard lock(mutex);
    if (stopped || planned - oldest == entries.size()) return false;
    const uint64_t bytes = wanted->extent ? wanted->extent->bytes : 0;
    const bool is_ahead = wanted->extent && bytes <= ring.size();
    const auto place = is_ahead ? ring.take(bytes) : std::nullopt;
    if (is_ahead && !place) return false;
    const auto state = is_ahead ? Entry::State::kComing : Entry::State::kNotAhead;
    entry(planned) = {state, wanted->sample, place, bytes, {}};
    read.tag = planned++;
    policy.set_ahead(ring.used());
    if (!is_ahead) {
      if (takers > 0) ready.notify_all();
      wanted.reset();
      return true;
    }
    read.out = ring.at(*place);
  }
  read.extent = std::move(*wanted->extent);
  wanted.reset();
  Reader& by = reader != nullptr ? *reader : trial.reader();
  if (reader == nullptr) trial.submitted(read.extent.bytes);
  by.submit(read);
  return true;
}

void SampleBuffer::Impl::come() {
  const std::lock_guard lock(mutex);
  for (ReadDone& done : came) {
    Entry& it = entry(done.tag);
    it.state = done.status.is_ok() ? Entry::State::kReady : Entry::State::kFailed;
    it.failure = std::move(done.status);
    policy.was_read(it.bytes);
  }
  if (takers > 0) ready.notify_all();
}

// Does not wake for every sample that goes: one wake-up fills all room that is then free. False if
// nothing more is wanted.
bool SampleBuffer::Impl::sleep_until_there_is_room() {
  std::unique_lock lock(mutex);
  const auto has_room = [this] {
    return ring.used() <= ring.size() / 4 * 3 && planned - oldest <= entries.size() / 4 * 3;
  };
  if (!wanted && at_end) return false;
  const uint64_t seen = oldest;
  room.wait(lock, [&] { return stopped || planned == oldest || (oldest != seen && has_room()); });
  return !stopped;
}

SampleBuffer::SampleBuffer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

SampleBuffer::~SampleBuffer() {
  stop();
  if (impl_->thread.joinable()) impl_->thread.join();
  impl_->policy.set_ahead(0);
}

Result<std::unique_ptr<SampleBuffer>> SampleBuffer::start(const Dataset& dataset, OrderFn order,
                                                          PrefetchPolicy& policy) {
  const auto first = dataset.extent(0);
  LOCKSTEP_CHECK(first.has_value(), "samples that lie in no file cannot be read ahead");
  const bool may_fit = policy.ahead_limit_bytes() <= machine_memory_bytes();
  auto ring = may_fit ? ByteRing::make(policy.ahead_limit_bytes()) : std::nullopt;
  if (!ring)
    return Status(Code::kConfig, "cannot allocate " + std::to_string(policy.ahead_limit_bytes()) +
                                     " bytes to read ahead; use a smaller data.read_ahead_mb");
  LOCKSTEP_ASSIGN_OR_RETURN(auto readers, policy.readers(*first));
  auto impl = std::make_unique<Impl>(dataset, std::move(order), policy, std::move(*ring),
                                     ReaderTrial(std::move(readers)));
  try {
    const QuietSignals quiet;
    impl->thread = std::thread([raw = impl.get()] {
      name_this_thread("read ahead");
      raw->run();
    });
  } catch (const std::system_error& error) {
    return Status(Code::kInternal, std::string("cannot start the thread that reads ahead: ") +
                                       error.what() + "; " + kRaiseProcessLimit);
  }
  return std::unique_ptr<SampleBuffer>(new SampleBuffer(std::move(impl)));
}

Result<SampleBuffer::Held> SampleBuffer::take(uint64_t n, std::vector<uint8_t>& own) {
  using State = Impl::Entry::State;
  Impl& impl = *impl_;
  std::unique_lock lock(impl.mutex);
  ++impl.takers;
  impl.ready.wait(lock, [&] {
    return impl.stopped || (n < impl.planned && impl.entry(n).state != State::kComing);
  });
  --impl.takers;
  if (impl.stopped) return Status(Code::kAborted, "reading was stopped");
  Impl::Entry& entry = impl.entry(n);
  LOCKSTEP_CHECK(n >= impl.oldest && entry.state != State::kGone, "a sample is taken once");
  const State state = entry.state;
  const uint64_t sample = entry.sample;
  Status failure = std::move(entry.failure);
  std::span<const uint8_t> bytes;
  if (entry.place) bytes = {impl.ring.at(*entry.place), entry.bytes};
  lock.unlock();
  Held held(this, n, bytes);
  if (state == State::kReady) return held;
  if (state == State::kFailed) return failure;
  const auto extent = impl.dataset.extent(sample);
  if (!extent) return held;
  own.resize(extent->bytes);
  LOCKSTEP_RETURN_IF_ERROR(read_extent(*extent, own.data()));
  held.is_of(own);
  return held;
}

void SampleBuffer::give_back(uint64_t n) {
  Impl& impl = *impl_;
  const std::lock_guard lock(impl.mutex);
  impl.entry(n).state = Impl::Entry::State::kGone;
  for (; impl.oldest < impl.planned; ++impl.oldest) {
    const Impl::Entry& entry = impl.entry(impl.oldest);
    if (entry.state != Impl::Entry::State::kGone) break;
    if (entry.place) impl.ring.free_to(*entry.place, entry.bytes);
  }
  impl.policy.set_ahead(impl.ring.used());
  impl.room.notify_one();
}

void SampleBuffer::stop() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopped = true;
  }
  impl_->room.notify_one();
  impl_->ready.notify_all();
}

}  // namespace lockstep::data
