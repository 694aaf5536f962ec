// Tells whether the samples of a loader come from the disk or from memory, by the blocks that this
// process reads from disks.
//
//   memory ──▶ while batches were made, blocks were read (looked at after the first batch, then
//   every kLookEvery batches) ──▶ disk ──▶ no block at all in kWarmBatches batches ──▶ memory
//
// Other reads of the process, such as a library's page, look the same. So in the state "memory" a
// block counts only if it is read while a batch is made, and only if there is a page for every
// kSamplesAPage samples: in random order every sample that is not in memory costs a page or more. A
// wrong answer costs time, nothing else.
//
// It costs two system calls a batch. If the kernel does not count blocks (in a sandbox), all
// samples seem to be in memory.
//
// Thread-safety: the thread that makes the batches.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

namespace lockstep::data {

class DiskWatch {
 public:
  static constexpr uint32_t kLookEvery = 8;      // batches
  static constexpr uint32_t kWarmBatches = 256;  // one after another
  static constexpr uint64_t kSamplesAPage = 16;

  // Blocks of 512 bytes that this process has read from disks so far.
  using BlocksFn = std::function<uint64_t()>;
  static uint64_t blocks_read();

  explicit DiskWatch(BlocksFn blocks) : blocks_(std::move(blocks)) {}

  // Around every batch.
  void before();
  void after(uint64_t samples);

  bool is_from_disk() const { return is_from_disk_; }

 private:
  void look();

  const BlocksFn blocks_;
  bool is_from_disk_ = false;
  uint64_t seen_ = 0;                  // blocks, when last asked
  uint32_t batches_ = kLookEvery - 1;  // since the last look
  uint64_t blocks_read_ = 0;           // in those batches
  uint64_t samples_ = 0;               // of those batches
  uint32_t warm_batches_ = 0;          // in a row, without a block
};

}  // namespace lockstep::data
