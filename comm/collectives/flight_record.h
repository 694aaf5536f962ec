// The newest collective operations of a worker, each with its state and times: what a person needs
// to see which rank did not come to which bucket.
//
//   queue() ──▶ queued ── run() ──▶ running ── end() ──▶ done or failed
//
// A ring of fixed size. Noting an operation costs a look at the clock and a few stores: no lock, no
// memory, no system call. Readers skip a line that is overwritten while they read it.
//
// Thread-safety: queue(), run() and end() from any thread; begin_generation() from one thread at a
// time; the others from any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "comm/base/clock.h"
#include "comm/base/ids.h"
#include "comm/base/limits.h"
#include "comm/base/status.h"

namespace lockstep {

enum class FlightOperation : uint8_t {
  kConnect,
  kConnectGpus,
  kBeginStep,  // waits until peers have read the sums before
  kSum,
  kGpuSum,   // running: handed to the GPU
  kGpuWait,  // the host waits for all sums of the step
  kAgree,    // the control section, by which a rank agrees to the step
  kBroadcast,
  kGather,
  kBarrier,
};
enum class FlightState : uint8_t { kQueued, kRunning, kDone, kFailed };

// "gpu_sum", "running".
std::string_view name_of(FlightOperation operation);
std::string_view name_of(FlightState state);

struct FlightPlace {
  Generation generation = 0;
  Step step = 0;
  uint32_t bucket = 0;
};

struct FlightLine {
  uint64_t number = 0;  // from 1, in the order of queue()
  FlightOperation operation = FlightOperation::kSum;
  FlightState state = FlightState::kQueued;
  FlightPlace place;
  int64_t queued_ns = 0;
  int64_t running_ns = 0;  // 0: not yet
  int64_t ended_ns = 0;    // 0: not yet
};

// This worker's place among those whose operations it takes part in.
struct FlightWorld {
  Generation generation = 0;
  uint32_t rank = 0;
  uint32_t world = 0;  // 0: no generation has begun
};

class FlightRecord {
 public:
  explicit FlightRecord(const Clock& clock) : clock_(clock) {}  // `clock` outlives the record
  FlightRecord(const FlightRecord&) = delete;
  FlightRecord& operator=(const FlightRecord&) = delete;

  void begin_generation(const FlightWorld& world) noexcept;
  FlightWorld world() const noexcept;

  // The number of the operation, for the other two. Numbers that the ring has forgotten, and 0,
  // change nothing.
  uint64_t queue(FlightOperation operation, const FlightPlace& place) noexcept;
  void run(uint64_t number) noexcept;
  void end(uint64_t number, bool is_ok) noexcept;

  std::vector<FlightLine> newest(size_t most) const;  // oldest first
  // How long nothing has happened although an operation of the present generation has not ended;
  // 0: none.
  int64_t stands_still_ms() const;
  int64_t now_ns() const { return clock_.monotonic_ns(); }

 private:
  struct Entry {
    std::atomic<uint64_t> number{0};  // 0: empty, or being written
    std::atomic<FlightOperation> operation{FlightOperation::kSum};
    std::atomic<FlightState> state{FlightState::kQueued};
    std::atomic<Generation> generation{0};
    std::atomic<Step> step{0};
    std::atomic<uint32_t> bucket{0};
    std::atomic<int64_t> queued_ns{0};
    std::atomic<int64_t> running_ns{0};
    std::atomic<int64_t> ended_ns{0};
  };
  Entry& entry(uint64_t number) { return ring_[number % ring_.size()]; }

  const Clock& clock_;
  std::atomic<uint64_t> last_{0};
  std::atomic<Generation> generation_{0};
  std::atomic<uint32_t> rank_{0};
  std::atomic<uint32_t> world_{0};
  std::array<Entry, limits::kFlightLines> ring_;
};

// One operation that runs while it lives. A null record notes nothing.
class Flight {
 public:
  Flight(FlightRecord* record, FlightOperation operation, const FlightPlace& place)
      : record_(record), number_(record == nullptr ? 0 : record->queue(operation, place)) {
    if (record_ != nullptr) record_->run(number_);
  }
  ~Flight() { end(false); }
  Flight(const Flight&) = delete;
  Flight& operator=(const Flight&) = delete;

  // Passes on how the operation ended.
  Status ended(Status status) {
    end(status.is_ok());
    return status;
  }
  void end(bool is_ok) {
    if (record_ != nullptr) record_->end(number_, is_ok);
    record_ = nullptr;
  }

 private:
  FlightRecord* record_;
  const uint64_t number_;
};

}  // namespace lockstep
