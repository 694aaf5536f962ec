#include "tests/unit/engine/plain_module.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "tests/unit/cuda/host_atomics.h"
#include "tests/unit/cuda/host_kernels.h"
#include "worker/cuda/make_room.h"
#include "worker/engine/loss.h"
#include "worker/optim/rules/average.h"

namespace lockstep::testing {

PlainModule::Memory PlainModule::make(size_t bytes) {
  return std::make_unique<Line[]>((bytes + sizeof(Line) - 1) / sizeof(Line));
}

Result<void*> PlainModule::ask_once(size_t bytes, bool is_of_device) {
  std::lock_guard lock(mutex_);
  if (bytes_left && *bytes_left < bytes) {
    left_errors_.insert(std::this_thread::get_id());
    return Status(Code::kNoMemory, "the device has no memory left");
  }
  if (bytes_left) *bytes_left -= bytes;
  std::byte* begin = memory_.emplace_back(make(bytes))[0].of;
  bytes_.push_back(bytes);
  (is_of_device ? device_ : host_)[begin] = bytes;
  return static_cast<void*>(begin);
}

Result<void*> PlainModule::ask(size_t bytes, bool is_of_device) {
  const auto clear = [this] {
    std::lock_guard lock(mutex_);
    left_errors_.erase(std::this_thread::get_id());
  };
  return cuda::ask_or_make_room([&] { return ask_once(bytes, is_of_device); }, clear,
                                torch_queue_.get());
}

Status PlainModule::launched() const {
  std::lock_guard lock(mutex_);
  if (left_errors_.erase(std::this_thread::get_id()) == 0) return Status::ok();
  return {Code::kInternal, "a kernel reports an error that an earlier call has left behind"};
}

Result<void*> PlainModule::allocate(size_t bytes) {
  return ask(bytes, /*is_of_device=*/true);
}

Result<void*> PlainModule::allocate_host(size_t bytes) {
  return ask(bytes, /*is_of_device=*/false);
}

void PlainModule::release(void* memory) {
  EXPECT_EQ(told, nullptr) << "memory is freed in a recording";
  if (memory == nullptr) return;
  std::lock_guard lock(mutex_);
  for (uint32_t i = 0; i < std::size(lanes_); ++i)
    run_to({static_cast<DeviceLane>(i), lanes_[i].enqueued});
  const auto found = std::find_if(memory_.begin(), memory_.end(),
                                  [memory](const Memory& m) { return m[0].of == memory; });
  ASSERT_TRUE(found != memory_.end()) << "memory is freed that the module has not given";
  const auto bytes = bytes_.begin() + (found - memory_.begin());
  if (bytes_left) *bytes_left += *bytes;
  device_.erase(static_cast<std::byte*>(memory));
  host_.erase(static_cast<std::byte*>(memory));
  bytes_.erase(bytes);
  memory_.erase(found);
}

uint64_t PlainModule::allocated_bytes() const {
  std::lock_guard lock(mutex_);
  uint64_t bytes = 0;
  for (const auto& [begin, size] : device_) bytes += size;
  return bytes;
}

void PlainModule::pin(void* memory, size_t bytes) {
  std::lock_guard lock(mutex_);
  EXPECT_TRUE(pinned_.emplace(static_cast<std::byte*>(memory), bytes).second);
}

void PlainModule::unpin(void* memory) {
  std::lock_guard lock(mutex_);
  EXPECT_EQ(pinned_.erase(static_cast<std::byte*>(memory)), 1u);
}

// `ranges`: begin, bytes.
bool PlainModule::is_in(const std::map<const std::byte*, size_t>& ranges, const void* memory) {
  const auto* at = static_cast<const std::byte*>(memory);
  auto after = ranges.upper_bound(at);
  if (after == ranges.begin()) return false;
  --after;
  return at < after->first + after->second;
}

PlainModule::Snapshot PlainModule::snapshot() const {
  std::lock_guard lock(mutex_);
  Snapshot now;
  for (size_t i = 0; i < memory_.size(); ++i)
    now.memory.emplace_back(memory_[i][0].of, memory_[i][0].of + bytes_[i]);
  for (size_t i = 0; i < now.late.size(); ++i) {
    now.late[i] = lanes_[i].late;
    now.enqueued[i] = lanes_[i].enqueued;
  }
  for (const auto& [mark, place] : marks_) now.marks[mark] = {place.lane, place.tasks};
  return now;
}

void PlainModule::restore(const Snapshot& then) {
  std::lock_guard lock(mutex_);
  EXPECT_EQ(memory_.size(), then.memory.size()) << "memory was asked for in a recording";
  for (size_t i = 0; i < then.memory.size(); ++i)
    std::memcpy(memory_[i][0].of, then.memory[i].data(), bytes_[i]);
  for (size_t i = 0; i < then.late.size(); ++i) lanes_[i] = {then.late[i], then.enqueued[i]};
  marks_.clear();
  for (const auto& [mark, place] : then.marks) marks_[mark] = {place.first, place.second};
}

bool PlainModule::is_mine(const void* memory) const {
  std::lock_guard lock(mutex_);
  return is_of_device(memory);
}

bool PlainModule::is_of_device(const void* memory) const {
  return is_in(device_, memory);
}

void PlainModule::expect_mine(const void* memory) const {
  EXPECT_TRUE(is_mine(memory)) << "a kernel is given memory of the host";
}

Status PlainModule::images(const cuda::ImageWork& work) {
  LOCKSTEP_RETURN_IF_ERROR(launched());
  tell("images", static_cast<const void*>(work.bytes), work.share, work.samples);
  expect_mine(work.bytes);
  expect_mine(work.tables);
  expect_mine(work.share);
  const uint64_t planes = uint64_t{work.samples} * work.channels;
  for (uint64_t i = 0; i < planes * work.plane; ++i) {
    const float* table = work.tables + i / work.plane % work.channels * 256;
    const float own = table[work.bytes[i]];
    const uint64_t other = cuda::mixed_plane(work, i / work.plane) + i % work.plane;
    work.out[i] = *work.share < 1 ? mixed(own, table[work.bytes[other]], *work.share) : own;
  }
  return Status::ok();
}

template <typename T>
Status PlainLayers<T>::cross_entropy(const CrossEntropy<T>& work, uint32_t rows) {
  LOCKSTEP_RETURN_IF_ERROR(of_.launched());
  of_.expect_mine(work.labels);
  of_.expect_mine(work.losses);
  of_.expect_mine(work.right);
  of_.expect_mine(work.values);
  of_.tell("cross entropy", work.labels, static_cast<const void*>(work.values), work.losses,
           work.right, rows);
  if constexpr (!std::is_same_v<T, float>) {
    return HostLayers<T>::cross_entropy(work, rows);
  } else {
    this->count_loss(work);
    for (uint64_t row = 0; row < rows; ++row) {
      float* gradient = work.gradient + row * work.width.stride;
      const std::vector<float> logits(work.logits + row * work.width.stride,
                                      work.logits + row * work.width.stride + work.width.classes);
      const SlotLoss loss =
          softmax_cross_entropy(logits.data(), target_of(work.labels, row, rows, *work.values),
                                work.width.classes, work.values->step_labels, gradient);
      std::fill(gradient + work.width.classes, gradient + work.width.stride, 0.0f);
      work.losses[row] = static_cast<float>(loss.sum);
      work.right[row] = static_cast<uint32_t>(loss.correct);
    }
    return Status::ok();
  }
}

template <typename T>
Status PlainLayers<T>::dropout(const cuda::DropoutWork<T>& work) {
  LOCKSTEP_RETURN_IF_ERROR(of_.launched());
  of_.expect_mine(work.stream.slot_key);
  of_.tell("dropout", work.stream.slot_key, work.stream.layer, work.rule.dropped_below);
  return HostLayers<T>::dropout(work);
}

template class PlainLayers<float>;
template class PlainLayers<cuda::Bf16>;

Status PlainModule::add(DeviceLane which, float* into, const float* from, uint64_t elements) {
  expect_mine(into);
  expect_mine(from);
  EXPECT_EQ(which, DeviceLane::kGradients);
  std::lock_guard lock(mutex_);
  ++lane(which).enqueued;
  lane(which).late.push_back([into, from, elements] {
    for (uint64_t i = 0; i < elements; ++i) into[i] += from[i];
  });
  return Status::ok();
}

Status PlainModule::block_totals(const cuda::TotalsWork& work) {
  LOCKSTEP_RETURN_IF_ERROR(launched());
  for (const void* memory :
       {static_cast<const void*>(work.sums), static_cast<const void*>(work.blocks),
        static_cast<const void*>(work.totals)}) {
    expect_mine(memory);
  }
  for (uint32_t i = work.first; i < work.first + work.count; ++i)
    work.totals[i] = cuda::totals_of(work.sums, work.blocks[i]);
  return Status::ok();
}

Status PlainModule::decide(cuda::ApplyState* state, const cuda::StepRule& rule,
                           const cuda::BlockTotals* totals, uint32_t blocks, const float* control) {
  batches_before_apply = sample_copies;
  expect_mine(state);
  expect_mine(totals);
  expect_mine(control);
  const cuda::SerialTeam<cuda::kTotalsLanes> team;
  const cuda::Totals sum = cuda::sum_of_blocks(team, totals, blocks);
  cuda::decide<testing::HostAtomics>(*state, rule, sum, control);
  return Status::ok();
}

template <typename Rule>
void update_all(const cuda::StepVerdict& verdict, std::span<const cuda::UpdateChunk> chunks,
                const UpdateBuffers& buffers, const GroupFactors<Rule>& factors, bool keeps_zeros) {
  for (const cuda::UpdateChunk& chunk : chunks) {
    typename Rule::Factors of_group = factors.of[chunk.group];
    of_group.grad_scale = verdict.grad_scale;
    for (uint32_t i = 0; i < chunk.length; i += 4)
      update_quad<Rule>(buffers, chunk.start + i, of_group, keeps_zeros && chunk.is_pruned != 0);
  }
}

Status PlainModule::update(const cuda::StepVerdict* verdict, const cuda::UpdateChunk* chunks,
                           uint32_t count, const UpdateBuffers& buffers,
                           const UpdateFactors& factors, bool keeps_zeros) {
  for (const void* memory :
       {static_cast<const void*>(verdict), static_cast<const void*>(chunks),
        static_cast<const void*>(buffers.params), static_cast<const void*>(buffers.grads)}) {
    expect_mine(memory);
  }
  for (const float* state : buffers.state) {
    if (state != nullptr) expect_mine(state);
  }
  if (verdict->applies == 0) return Status::ok();
  std::visit(
      [&](const auto& of) {
        update_all(*verdict, {chunks, count}, buffers, of, keeps_zeros);
      },
      factors);
  return Status::ok();
}

Status PlainModule::average(const cuda::StepVerdict* verdict, const float* params, uint64_t n,
                            float rate, float* average) {
  expect_mine(params);
  expect_mine(average);
  if (verdict->applies == 0) return Status::ok();
  for (uint64_t i = 0; i < n; ++i) average[i] = next_average(average[i], params[i], rate);
  return Status::ok();
}

Status PlainModule::statistics(const cuda::StepVerdict* verdict, const float* sums, uint64_t n,
                               uint32_t slots, float* statistics) {
  if (n == 0) return Status::ok();  // as the launch
  expect_mine(sums);
  expect_mine(statistics);
  if (verdict->applies == 0) return Status::ok();
  for (uint64_t i = 0; i < n; ++i) statistics[i] = sums[i] / static_cast<float>(slots);
  return Status::ok();
}

}  // namespace lockstep::testing
