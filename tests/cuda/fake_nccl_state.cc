// The record and the planned failures of FakeNccl. fake_nccl.cc has NCCL's functions.
#include <algorithm>
#include <utility>

#include "tests/cuda/fake_nccl.h"

namespace lockstep::testing {

void FakeNccl::reset() {
  std::lock_guard lock(mutex_);
  log_.clear();
  misuses_.clear();
  is_hopeless_ = false;
  failed_.clear();
  taken_.clear();
  most_taken_.clear();
  gpu_bytes = UINT64_MAX;
  living_ = 0;
  hangs_ = is_blocked_ = false;
  blocks_in_.clear();
  looks_until_ready = 2;
  outcome = ncclSuccess;
  cannot_init = never_ready = gets_wrong_bit = loses_data = -1;
  cannot_map = -1;
  wrong_from_bytes = 0;
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

std::vector<std::string> FakeNccl::misuses() {
  std::lock_guard lock(mutex_);
  return misuses_;
}

ncclResult_t FakeNccl::misuse(int rank, const std::string& what) {
  std::lock_guard lock(mutex_);
  misuses_.push_back("rank " + std::to_string(rank) + ": " + what);
  return ncclInvalidArgument;
}

bool FakeNccl::is_hopeless() const {
  std::lock_guard lock(mutex_);
  return is_hopeless_;
}

void FakeNccl::hang_for_ever(const std::string& why) {
  std::lock_guard lock(mutex_);
  misuses_.push_back(why);
  is_hopeless_ = true;
}

void FakeNccl::fail(int rank, ncclResult_t how) {
  std::lock_guard lock(mutex_);
  failed_[rank] = {how, epoch_};
}

void FakeNccl::heal() {
  std::lock_guard lock(mutex_);
  ++epoch_;
}

uint64_t FakeNccl::epoch() const {
  std::lock_guard lock(mutex_);
  return epoch_;
}

ncclResult_t FakeNccl::outcome_of(int rank, ncclResult_t failed, uint64_t made_in) const {
  std::lock_guard lock(mutex_);
  if (failed != ncclSuccess) return failed;
  const auto found = failed_.find(rank);
  const bool has_failed = found != failed_.end() && made_in <= found->second.second;
  return has_failed ? found->second.first : outcome;
}

bool FakeNccl::take(int rank, int64_t more) {
  std::lock_guard lock(mutex_);
  int64_t& taken = taken_[rank];
  if (more > 0 && static_cast<uint64_t>(taken + more) > gpu_bytes) return false;
  taken += more;
  most_taken_[rank] = std::max(most_taken_[rank], taken);
  return true;
}

uint64_t FakeNccl::most_taken(int rank) const {
  std::lock_guard lock(mutex_);
  const auto found = most_taken_.find(rank);
  return found == most_taken_.end() ? 0 : static_cast<uint64_t>(found->second);
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
