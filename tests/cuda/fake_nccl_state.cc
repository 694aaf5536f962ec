// What FakeNccl remembers and is told, beside NCCL's functions (fake_nccl.cc).
#include <utility>

#include "tests/cuda/fake_nccl.h"

namespace lockstep::testing {

void FakeNccl::reset() {
  std::lock_guard lock(mutex_);
  log_.clear();
  living_ = 0;
  hangs_ = is_blocked_ = false;
  blocks_in_.clear();
  looks_until_ready = 2;
  outcome = ncclSuccess;
  cannot_init = never_ready = gets_wrong_bit = loses_data = -1;
  cannot_map = -1;
  notices_end = has_windows = true;
  makes_no_id = false;
  forget_rings();
}

std::vector<std::string> FakeNccl::log() {
  std::lock_guard lock(mutex_);
  return log_;
}

void FakeNccl::note(int rank, const std::string& what) {
  std::lock_guard lock(mutex_);
  log_.push_back("rank " + std::to_string(rank) + ": " + what);
}

int FakeNccl::living() const {
  std::lock_guard lock(mutex_);
  return living_;
}

void FakeNccl::count(int more) {
  std::lock_guard lock(mutex_);
  living_ += more;
}

void FakeNccl::hang(bool does) {
  std::lock_guard lock(mutex_);
  hangs_ = does;
  changed_.notify_all();
}

void FakeNccl::pass_hang() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !hangs_; });
}

void* FakeNccl::allocate(size_t bytes) {
  std::lock_guard lock(mutex_);
  std::vector<std::byte> memory(bytes);
  std::byte* const begin = memory.data();
  allocated_[begin] = std::move(memory);
  return begin;
}

void FakeNccl::release(void* memory) {
  std::lock_guard lock(mutex_);
  allocated_.erase(static_cast<std::byte*>(memory));
}

bool FakeNccl::has_allocated(const void* memory, size_t bytes) const {
  std::lock_guard lock(mutex_);
  const auto found = allocated_.find(static_cast<const std::byte*>(memory));
  return found != allocated_.end() && bytes <= found->second.size();
}

void FakeNccl::block(int rank, const std::string& function) {
  std::lock_guard lock(mutex_);
  blocks_rank_ = rank;
  blocks_in_ = function;
  is_blocked_ = false;
  changed_.notify_all();
}

void FakeNccl::pass_block(int rank, const std::string& function) {
  std::unique_lock lock(mutex_);
  const auto passes = [&] { return rank != blocks_rank_ || function != blocks_in_; };
  if (passes()) return;
  is_blocked_ = true;
  changed_.notify_all();
  changed_.wait(lock, passes);
}

void FakeNccl::wait_until_blocked() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return is_blocked_; });
}

}  // namespace lockstep::testing
