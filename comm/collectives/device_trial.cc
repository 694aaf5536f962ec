#include "comm/collectives/device_trial.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "comm/base/prng.h"
#include "comm/collectives/forwarding.h"
#include "comm/collectives/sum_slice.h"

namespace lockstep {
namespace {

constexpr uint64_t kPeriod = 65'521;  // of the values; a prime, and no slice begins at a multiple

// An answer on its way to all ranks.
struct Answer {
  char why[256] = {};      // empty: all is well
  char bus[32] = {};       // DevicePlace
  char slice[64] = {};     //
  char library[32] = {};   // its version
  uint32_t was_tried = 0;  // 1: `why` is of a trial, and says itself whose failure it is
  uint32_t is_late = 0;    // 1: `why` is a time-out
};

template <size_t N>
void put(const std::string& text, char (&to)[N]) {
  std::memcpy(to, text.data(), std::min(text.size(), N - 1));
}

Result<std::vector<Answer>> gather(Collective& host, Generation generation, const Answer& mine) {
  std::vector<Answer> all(host.world_size());
  const Tag tag{.generation = generation, .bytes = sizeof mine};
  LOCKSTEP_RETURN_IF_ERROR(host.all_gather(tag, std::as_bytes(std::span(&mine, 1)),
                                           std::as_writable_bytes(std::span(all))));
  for (Answer& answer : all)
    answer.why[sizeof answer.why - 1] = answer.bus[sizeof answer.bus - 1] =
        answer.slice[sizeof answer.slice - 1] = answer.library[sizeof answer.library - 1] = '\0';
  return all;
}

std::string named(size_t rank, const DeviceGeneration& in) {
  return "rank " + std::to_string(rank) + " (member " + std::to_string(in.members[rank]) + ")";
}

// The failure of an earlier trial, if a rank knows of one. Empty: none does.
std::string known_among(const std::vector<Answer>& all) {
  const auto found = std::find_if(all.begin(), all.end(), [](const Answer& answer) {
    return answer.was_tried == 1 && answer.why[0] != '\0';
  });
  return found == all.end() ? "" : found->why;
}

// Which rank failed first in their order, and why. Empty: none.
std::string failure_among(const std::vector<Answer>& all, const DeviceGeneration& in) {
  for (size_t rank = 0; rank < all.size(); ++rank)
    if (all[rank].why[0] != '\0') return named(rank, in) + ": " + all[rank].why;
  return "";
}

// Whether the only failure is that some ranks were not done in time.
bool is_only_late(const std::vector<Answer>& all) {
  return std::all_of(all.begin(), all.end(), [](const Answer& answer) {
    return answer.why[0] == '\0' || answer.is_late == 1;
  });
}

// Which two ranks compute on one device. Empty: none, as far as the ranks know.
std::string shared_among(const std::vector<Answer>& all, const DeviceGeneration& in) {
  for (size_t rank = 1; rank < all.size(); ++rank) {
    for (size_t other = 0; other < rank; ++other) {
      const std::string_view bus = all[rank].bus;
      if (bus.empty() || bus != all[other].bus || in.node_of_rank[rank] != in.node_of_rank[other])
        continue;
      const bool is_sliced = std::string_view(all[rank].slice) != all[other].slice;
      return named(rank, in) + " computes on " + (is_sliced ? "a MIG slice of GPU " : "GPU ") +
             std::string(bus) +
             (is_sliced ? ", and on another slice of it does " : ", and so does ") +
             named(other, in) + "; NCCL connects whole GPUs, each once";
    }
  }
  return "";
}

// Which rank has another version of the library than rank 0. Empty: none, as far as the ranks know.
std::string other_library_among(const std::vector<Answer>& all, const DeviceGeneration& in) {
  for (size_t rank = 1; rank < all.size(); ++rank) {
    const std::string_view version = all[rank].library;
    const std::string_view first = all[0].library;
    if (version.empty() || first.empty() || version == first) continue;
    return named(rank, in) + " has NCCL " + std::string(version) + ", and " + named(0, in) +
           " has " + std::string(first) + "; install one version on all nodes";
  }
  return "";
}

// Why the ranks need not try (V4), named by rank. Empty: all fit.
std::string misfit_among(const std::vector<Answer>& all, const DeviceGeneration& in) {
  for (const auto among : {failure_among, shared_among, other_library_among})
    if (std::string why = among(all, in); !why.empty()) return why;
  return "";
}

// A process that is started again would find the same.
bool is_lasting(Code code) {
  return code == Code::kInternal || code == Code::kConfig;
}

// The host's Collective as the devices' connection gets it. Does not own it.
class TrialControl final : public Collective {
 public:
  explicit TrialControl(Collective& host) : host_(host) {}

  void end_trial() { is_trial_ = false; }
  const Status& broken() const { return broken_; }

  uint32_t rank() const override { return host_.rank(); }
  uint32_t world_size() const override { return host_.world_size(); }
  Status begin_step(const Tag& tag, const StepMerge& merge) override {
    return note(host_.begin_step(tag, merge));
  }
  Status all_reduce(const Tag& tag, const ElementRange& range) override {
    return note(host_.all_reduce(tag, range));
  }
  const float* reduced() const override { return host_.reduced(); }
  Status broadcast(const Tag& tag, std::span<std::byte> data, uint32_t root) override {
    return note(host_.broadcast(tag, data, root));
  }
  Status all_gather(const Tag& tag, std::span<const std::byte> mine,
                    std::span<std::byte> all) override {
    return note(host_.all_gather(tag, mine, all));
  }
  Status barrier(const Tag& tag) override { return note(host_.barrier(tag)); }
  void check_next_sum(uint32_t owner) override { host_.check_next_sum(owner); }
  std::optional<uint64_t> checked_sum() const override { return host_.checked_sum(); }
  void abort() noexcept override {
    if (!is_trial_) host_.abort();
  }
  int64_t broken_rank() const override { return host_.broken_rank(); }

 private:
  Status note(Status status) {
    if (broken_.is_ok()) broken_ = status;
    return status;
  }

  Collective& host_;
  std::atomic<bool> is_trial_{true};
  Status broken_;  // of the first call that failed
};

// Keeps what the connection uses until after the connection.
class Tried final : public Forwarding<DeviceCollective> {
 public:
  using Forwarding::Forwarding;
  Result<uint64_t> wait_for_sums() override { return inner().wait_for_sums(); }
};

// The same on every rank, and small enough that whole numbers never round.
std::vector<float> values_of(uint32_t rank, uint64_t elements, bool is_exact) {
  std::vector<float> values(elements);
  for (uint64_t i = 0; i < std::min(elements, kPeriod); ++i) {
    const auto whole = static_cast<float>(stream_value(rank + 1, i) % 2001) - 1000.0f;
    values[i] = is_exact ? whole * 1e-3f : whole;
  }
  for (uint64_t i = kPeriod; i < elements; ++i) values[i] = values[i - kPeriod];
  return values;
}

// State that a trial shares with the connection that it makes, whose waits ask is_over().
struct Trial {
  Trial(Collective& host, const Clock& of, int64_t limit_ms, std::function<bool()> closed)
      : control(host),
        clock(of),
        end_ms(of.monotonic_ms() + limit_ms),
        by_session(std::move(closed)) {}

  bool is_late() const { return is_trial && clock.monotonic_ms() >= end_ms; }
  bool is_over() const { return by_session() || is_late(); }
  void succeed() {
    is_trial = false;
    control.end_trial();
  }

  TrialControl control;
  const Clock& clock;
  const int64_t end_ms;
  const std::function<bool()> by_session;
  std::atomic<bool> is_trial{true};
};

}  // namespace

Result<DeviceTrial::Connection> DeviceTrial::connect(DeviceGeneration next) {
  if (next.control->world_size() == 1) return Connection();
  Answer mine;
  put(why_.empty() ? own_why_ : why_, mine.why);
  put(parts_.place.bus, mine.bus);
  put(parts_.place.slice, mine.slice);
  put(parts_.library, mine.library);
  mine.was_tried = why_.empty() ? 0 : 1;
  LOCKSTEP_ASSIGN_OR_RETURN(const auto all, gather(*next.control, next.generation, mine));
  if (why_.empty()) why_ = known_among(all);
  std::string why = why_.empty() ? misfit_among(all, next) : why_;
  Connection made;
  if (why.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(made, attempt(std::move(next)));
    why = why_.empty() ? late_why_ + "; the next generation tries once more" : why_;
  }
  if (made != nullptr) {
    has_summed_ = true;
    has_timed_out_ = false;
  }
  note(made != nullptr ? "comm.backend auto: the GPUs sum over NCCL; a bucket that they summed has "
                         "the host's bits"
                       : "comm.backend auto: the host sums gradients, because NCCL cannot: " + why);
  return made;
}

void DeviceTrial::note(const std::string& what) {
  if (parts_.note && what != noted_) parts_.note(what);
  noted_ = what;
}

Result<DeviceTrial::Connection> DeviceTrial::attempt(DeviceGeneration next) {
  const DeviceGeneration asked = next;
  const int ranks = static_cast<int>(next.control->world_size());
  const int limit_ms = parts_.limit_ms + ranks * parts_.rank_limit_ms;
  const auto trial =
      std::make_shared<Trial>(*next.control, parts_.clock, limit_ms, std::move(next.is_closed));
  next.control = &trial->control;
  next.deadline_ms = std::min(next.deadline_ms, limit_ms);
  next.is_closed = [trial] { return trial->is_over(); };  // keeps the trial as long as its waits

  // Whether `found` is ok on all ranks. V3: an error that is not about the devices is an error.
  const auto all_found = [&](Status found) -> Result<bool> {
    if (!found.is_ok() && trial->by_session()) return found;
    LOCKSTEP_RETURN_IF_ERROR(trial->control.broken());
    if (!found.is_ok() && trial->is_late())
      found = {Code::kTimeout, "not done after " + std::to_string(limit_ms) + " ms"};
    if (is_lasting(found.code()) && !has_summed_ && parts_.remember)
      parts_.remember(found.message());
    return all_agree(asked, found);
  };
  Result<Connection> made = parts_.connect(std::move(next));
  LOCKSTEP_ASSIGN_OR_RETURN(bool is_good, all_found(made.status()));
  if (is_good) {
    LOCKSTEP_ASSIGN_OR_RETURN(is_good, all_found(sum_one_bucket(**made, asked.generation)));
  }
  if (!is_good) {
    if (made.is_ok()) (*made)->abort();
    return Connection();
  }
  trial->succeed();
  return Connection(std::make_unique<Tried>(std::move(*made)));
}

Result<bool> DeviceTrial::all_agree(const DeviceGeneration& in, const Status& mine) {
  Answer answer;
  if (!mine.is_ok()) put(mine.message().empty() ? "failed" : mine.message(), answer.why);
  answer.is_late = mine.code() == Code::kTimeout ? 1 : 0;
  LOCKSTEP_ASSIGN_OR_RETURN(const auto all, gather(*in.control, in.generation, answer));
  late_why_ = failure_among(all, in);
  if (late_why_.empty()) return true;
  const bool tries_again = is_only_late(all) && !has_timed_out_;
  has_timed_out_ = tries_again;
  if (!tries_again) why_ = std::exchange(late_why_, "");
  return false;
}

Status DeviceTrial::sum_one_bucket(DeviceCollective& devices, Generation generation) {
  const uint32_t world = devices.world_size();
  std::vector<SlotRun> runs;
  for (uint32_t r = 0; r < world; ++r) runs.push_back({r, r + 1});
  const StepMerge merge = make_step_merge(runs, world, std::vector<bool>(world, true));
  const uint64_t elements =
      std::min(parts_.buffer->layout().gradients, limits::kDeviceTrialElements);
  const uint64_t period = std::min(elements, kPeriod);
  std::vector<std::vector<float>> values;
  for (uint32_t r = 0; r < world; ++r) values.push_back(values_of(r, period, parts_.is_exact));
  std::vector<float> expected(period);
  sum_slice(
      merge, period, {0, period}, [&](const Leaf& leaf) { return values[leaf.rank].data(); },
      expected.data());

  std::vector<float> found(elements);
  const Status status = exchange(devices, generation, merge,
                                 values_of(devices.rank(), elements, parts_.is_exact), found);
  // The gaps between parameters are zero for good, and no backward writes there.
  const std::vector<float> zeros(elements);
  const uint32_t region = merge.ranks[devices.rank()].partials.front().region;
  const Status cleared = parts_.memory.upload(parts_.buffer->partial(region), zeros);
  LOCKSTEP_RETURN_IF_ERROR(status);
  LOCKSTEP_RETURN_IF_ERROR(cleared);
  LOCKSTEP_RETURN_IF_ERROR(parts_.memory.upload(parts_.buffer->result(), zeros));
  for (uint64_t i = 0; i < elements; ++i) {
    // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): bits
    if (std::memcmp(&found[i], &expected[i % period], sizeof(float)) == 0) continue;
    return {Code::kInternal, "element " + std::to_string(i) + " of a trial sum is " +
                                 std::to_string(found[i]) + ", not the host's " +
                                 std::to_string(expected[i % period])};
  }
  return Status::ok();
}

Status DeviceTrial::exchange(DeviceCollective& devices, Generation generation,
                             const StepMerge& merge, std::span<const float> mine,
                             std::span<float> found) {
  const uint32_t region = merge.ranks[devices.rank()].partials.front().region;
  const uint64_t bytes = mine.size() * sizeof(float);
  LOCKSTEP_RETURN_IF_ERROR(devices.begin_step({.generation = generation}, merge));
  LOCKSTEP_RETURN_IF_ERROR(parts_.memory.upload(parts_.buffer->partial(region), mine));
  LOCKSTEP_RETURN_IF_ERROR(
      devices.all_reduce({.generation = generation, .bytes = bytes}, {0, mine.size()}));
  LOCKSTEP_RETURN_IF_ERROR(devices.wait_for_sums().status());
  return parts_.memory.download(found, devices.reduced());
}

}  // namespace lockstep
