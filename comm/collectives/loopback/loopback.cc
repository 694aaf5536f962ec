#include "comm/collectives/loopback/loopback.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "comm/base/check.h"
#include "comm/collectives/cross_check.h"

namespace lockstep {
namespace {

class PlainBuffer final : public GradientBuffer {
 public:
  PlainBuffer(const BufferLayout& layout, uint32_t regions, float* first)
      : layout_(layout),
        regions_(regions),
        first_(first),
        data_(allocate((first == nullptr ? regions + 1 : regions) * stride())) {}
  ~PlainBuffer() override { ::operator delete[](data_, kAlignment); }

  const BufferLayout& layout() const override { return layout_; }
  uint32_t regions() const override { return regions_; }
  float* partial(uint32_t region) override {
    LOCKSTEP_CHECK(region < regions_, "no such region");
    if (first_ == nullptr) return data_ + (region + 1) * stride();
    return region == 0 ? first_ : data_ + region * stride();
  }
  float* result() override { return data_; }

 private:
  static constexpr std::align_val_t kAlignment{4096};

  // The distance between two regions in elements. Each region has pages of its own, because a
  // device pins them one by one.
  uint64_t stride() const { return (layout_.elements + 1023) / 1024 * 1024; }

  static float* allocate(uint64_t elements) {
    auto* data = static_cast<float*>(::operator new[](elements * sizeof(float), kAlignment));
    std::memset(data, 0, elements * sizeof(float));
    return data;
  }

  BufferLayout layout_;
  uint32_t regions_;
  float* first_;
  float* data_;  // the result, then the regions that are not the caller's
};

// One rank's offer to the operation in progress.
struct Offer {
  const char* operation = "";
  Tag tag;
  ElementRange range;
  uint32_t root = 0;
  const std::byte* data = nullptr;
};

// The meeting point: all ranks arrive with an offer, all see all offers, all leave.
struct Meeting {
  Meeting(Generation g, std::vector<GradientBuffer*> b)
      : generation(g), buffers(std::move(b)), offers(buffers.size()) {}

  const Generation generation;
  const std::vector<GradientBuffer*> buffers;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Offer> offers;
  size_t arrived = 0;
  size_t leaving = 0;
  uint64_t round = 0;
  bool aborted = false;
};

Status aborted_status() {
  return Status(Code::kAborted, "loopback: the generation was aborted; wait for the next one");
}

class LoopbackCollective final : public Collective {
 public:
  LoopbackCollective(std::shared_ptr<Meeting> meeting, uint32_t rank)
      : meeting_(std::move(meeting)), rank_(rank) {}
  ~LoopbackCollective() override { abort(); }

  uint32_t rank() const override { return rank_; }
  uint32_t world_size() const override { return static_cast<uint32_t>(meeting_->offers.size()); }

  Status begin_step(const Tag& tag, const StepMerge& merge) override {
    LOCKSTEP_CHECK(merge.ranks.size() == world_size(), "one schedule per rank");
    step_ = tag.step;
    merge_ = merge;
    // One rank with one partial has nothing to add: its partial is the sum.
    const std::vector<Leaf>& leaves = merge.gradients.leaves;
    alone_ = world_size() == 1 && leaves.size() == 1 && merge.control.leaves.size() == 1;
    reduced_ = alone_ ? buffer().partial(leaves[0].region) : buffer().result();
    // Every operation ends when all ranks leave together, so everyone has read everything
    // published.
    std::lock_guard lock(meeting_->mutex);
    return meeting_->aborted ? aborted_status() : Status::ok();
  }

  Status all_reduce(const Tag& tag, const ElementRange& range) override {
    const BufferLayout& layout = buffer().layout();
    LOCKSTEP_CHECK(range.begin <= range.end && range.end <= layout.elements &&
                       range.begin % kCutElements == 0 && range.end % kCutElements == 0,
                   "an operation's range is cut at multiples of kCutElements");
    LOCKSTEP_CHECK(tag.step == step_, "all_reduce of a step that was not begun");
    return meet({"all_reduce", tag, range, 0, nullptr}, [&] {
      if (alone_) return;
      const uint64_t control = std::max(range.begin, std::min(range.end, layout.statistics));
      sum(merge_.gradients, range.begin, control);
      sum(merge_.control, control, range.end);
      check_sum(range);
    });
  }

  void check_next_sum(uint32_t owner) override { check_owner_ = owner; }
  std::optional<uint64_t> checked_sum() const override { return checked_sum_; }

  const float* reduced() const override { return reduced_; }

  Status broadcast(const Tag& tag, std::span<std::byte> data, uint32_t root) override {
    LOCKSTEP_CHECK(root < world_size(), "no such root");
    return meet({"broadcast", tag, {0, data.size()}, root, data.data()}, [&] {
      if (root != rank_ && !data.empty()) {
        std::memcpy(data.data(), meeting_->offers[root].data, data.size());
      }
    });
  }

  Status all_gather(const Tag& tag, std::span<const std::byte> mine,
                    std::span<std::byte> all) override {
    LOCKSTEP_CHECK(all.size() == mine.size() * world_size(), "room for everyone's part");
    return meet({"all_gather", tag, {0, mine.size()}, 0, mine.data()}, [&] {
      for (size_t r = 0; r < world_size() && !mine.empty(); ++r) {
        std::memcpy(all.data() + r * mine.size(), meeting_->offers[r].data, mine.size());
      }
    });
  }

  Status barrier(const Tag& tag) override {
    return meet({"barrier", tag, {}, 0, nullptr}, [] {});
  }

  void abort() noexcept override {
    std::lock_guard lock(meeting_->mutex);
    meeting_->aborted = true;
    meeting_->changed.notify_all();
  }

 private:
  GradientBuffer& buffer() { return *meeting_->buffers[rank_]; }

  void sum(const SumProgram& program, uint64_t begin, uint64_t end) {
    if (begin == end) return;
    std::vector<const float*> leaves;
    for (const Leaf& leaf : program.leaves) {
      leaves.push_back(meeting_->buffers[leaf.rank]->partial(leaf.region) + begin);
    }
    evaluate_sum(program, leaves, buffer().result() + begin, end - begin);
  }

  // Everyone has summed everything itself: the range is one slice.
  void check_sum(const ElementRange& range) {
    if (!check_owner_) return;
    const uint32_t owner = *std::exchange(check_owner_, std::nullopt);
    checked_sum_.reset();
    if (takes_part(rank_, owner, world_size())) {
      checked_sum_ = hash_of(buffer().result() + range.begin, range.size());
    }
  }

  // Puts `offer`, waits for everyone's, does `work`, and waits until everyone has done theirs.
  template <typename Work>
  Status meet(const Offer& offer, const Work& work) {
    std::unique_lock lock(meeting_->mutex);
    if (meeting_->aborted) return aborted_status();
    meeting_->offers[rank_] = offer;
    if (!wait_for_all(&meeting_->arrived, lock)) return aborted_status();
    for (uint32_t r = 0; r < world_size(); ++r) {
      if (matches(meeting_->offers[r], offer)) continue;
      meeting_->aborted = true;
      meeting_->changed.notify_all();
      return Status(Code::kInternal, "loopback: rank " + std::to_string(rank_) + " is in " +
                                         offer.operation + " of step " +
                                         std::to_string(offer.tag.step) + ", rank " +
                                         std::to_string(r) + " in another operation");
    }
    lock.unlock();
    work();
    lock.lock();
    return wait_for_all(&meeting_->leaving, lock) ? Status::ok() : aborted_status();
  }

  bool matches(const Offer& other, const Offer& mine) const {
    return std::string_view(other.operation) == mine.operation && other.tag == mine.tag &&
           other.tag.generation == meeting_->generation && other.range.begin == mine.range.begin &&
           other.range.end == mine.range.end && other.root == mine.root;
  }

  bool wait_for_all(size_t* count, std::unique_lock<std::mutex>& lock) {
    const uint64_t round = meeting_->round;
    if (++*count == world_size()) {
      *count = 0;
      ++meeting_->round;
      meeting_->changed.notify_all();
      return true;
    }
    meeting_->changed.wait(lock, [&] { return meeting_->aborted || meeting_->round != round; });
    return meeting_->round != round;
  }

  const std::shared_ptr<Meeting> meeting_;
  const uint32_t rank_;
  Step step_ = 0;
  StepMerge merge_;
  bool alone_ = false;
  const float* reduced_ = nullptr;
  std::optional<uint32_t> check_owner_;  // of the slice to check in the next sum
  std::optional<uint64_t> checked_sum_;
};

}  // namespace

std::unique_ptr<GradientBuffer> make_plain_buffer(const BufferLayout& layout, uint32_t regions,
                                                  float* first) {
  LOCKSTEP_CHECK(layout.gradients <= layout.statistics && layout.statistics <= layout.elements &&
                     layout.gradients % kCutElements == 0 &&
                     layout.statistics % kCutElements == 0 && layout.elements % kCutElements == 0,
                 "sections end at multiples of kCutElements");
  LOCKSTEP_CHECK(regions > 0, "at least one region");
  return std::make_unique<PlainBuffer>(layout, regions, first);
}

std::vector<std::unique_ptr<Collective>> make_loopback(
    Generation generation, const std::vector<GradientBuffer*>& buffers) {
  auto meeting = std::make_shared<Meeting>(generation, buffers);
  std::vector<std::unique_ptr<Collective>> ranks;
  for (uint32_t r = 0; r < buffers.size(); ++r) {
    ranks.push_back(std::make_unique<LoopbackCollective>(meeting, r));
  }
  return ranks;
}

}  // namespace lockstep
