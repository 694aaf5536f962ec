#include "comm/collectives/flight_record.h"

#include <algorithm>

namespace lockstep {
namespace {

constexpr std::string_view kOperations[] = {"connect", "connect_gpus", "begin_step", "sum",
                                            "gpu_sum", "gpu_wait",     "agree",      "broadcast",
                                            "gather",  "barrier"};
constexpr std::string_view kStates[] = {"queued", "running", "done", "failed"};

bool has_ended(FlightState state) {
  return state == FlightState::kDone || state == FlightState::kFailed;
}

}  // namespace

std::string_view name_of(FlightOperation operation) {
  return kOperations[static_cast<size_t>(operation)];
}

std::string_view name_of(FlightState state) {
  return kStates[static_cast<size_t>(state)];
}

void FlightRecord::begin_generation(const FlightWorld& world) noexcept {
  rank_.store(world.rank);
  world_.store(world.world);
  generation_.store(world.generation);
}

FlightWorld FlightRecord::world() const noexcept {
  return {generation_.load(), rank_.load(), world_.load()};
}

// The fields are released after the number 0 and acquired before the number is read again, so a
// reader that has seen one of them finds that its line has changed.
uint64_t FlightRecord::queue(FlightOperation operation, const FlightPlace& place) noexcept {
  const uint64_t number = last_.fetch_add(1, std::memory_order_relaxed) + 1;
  Entry& e = entry(number);
  e.number.store(0, std::memory_order_relaxed);
  e.operation.store(operation, std::memory_order_release);
  e.state.store(FlightState::kQueued, std::memory_order_release);
  e.generation.store(place.generation, std::memory_order_release);
  e.step.store(place.step, std::memory_order_release);
  e.bucket.store(place.bucket, std::memory_order_release);
  e.queued_ns.store(clock_.monotonic_ns(), std::memory_order_release);
  e.running_ns.store(0, std::memory_order_release);
  e.ended_ns.store(0, std::memory_order_release);
  e.number.store(number, std::memory_order_release);
  return number;
}

void FlightRecord::run(uint64_t number) noexcept {
  Entry& e = entry(number);
  if (number == 0 || e.number.load(std::memory_order_acquire) != number) return;
  e.running_ns.store(clock_.monotonic_ns(), std::memory_order_release);
  e.state.store(FlightState::kRunning, std::memory_order_release);
}

void FlightRecord::end(uint64_t number, bool is_ok) noexcept {
  Entry& e = entry(number);
  if (number == 0 || e.number.load(std::memory_order_acquire) != number) return;
  e.ended_ns.store(clock_.monotonic_ns(), std::memory_order_release);
  e.state.store(is_ok ? FlightState::kDone : FlightState::kFailed, std::memory_order_release);
}

std::vector<FlightLine> FlightRecord::newest(size_t most) const {
  const uint64_t last = last_.load(std::memory_order_acquire);
  const uint64_t count = std::min({last, uint64_t{ring_.size()}, uint64_t{most}});
  std::vector<FlightLine> lines;
  lines.reserve(count);
  for (uint64_t number = last - count + 1; number <= last; ++number) {
    const Entry& e = ring_[number % ring_.size()];
    if (e.number.load(std::memory_order_acquire) != number) continue;
    const FlightLine line{
        number,
        e.operation.load(std::memory_order_acquire),
        e.state.load(std::memory_order_acquire),
        {e.generation.load(std::memory_order_acquire), e.step.load(std::memory_order_acquire),
         e.bucket.load(std::memory_order_acquire)},
        e.queued_ns.load(std::memory_order_acquire),
        e.running_ns.load(std::memory_order_acquire),
        e.ended_ns.load(std::memory_order_acquire)};
    if (e.number.load(std::memory_order_relaxed) == number) lines.push_back(line);
  }
  return lines;
}

int64_t FlightRecord::stands_still_ms() const {
  const Generation present = generation_.load();
  bool is_open = false;
  int64_t changed_ns = 0;
  for (const FlightLine& line : newest(ring_.size())) {
    changed_ns = std::max({changed_ns, line.queued_ns, line.running_ns, line.ended_ns});
    is_open |= line.place.generation == present && !has_ended(line.state);
  }
  return is_open ? (clock_.monotonic_ns() - changed_ns) / 1'000'000 : 0;
}

}  // namespace lockstep
