// Whether the samples of a loader come from the disk or from memory, by the blocks that this
// process reads from a disk.
//
//   from memory ──▶ blocks were read while batches were made, at a look every kLookEvery of them,
//   the first one after the first ──▶ from the disk ──▶ none at all in kWarmBatches ──▶ from memory
//
// Other things that a process reads, such as a library's page, look the same. So while it is
// memory a block counts only if it is read while a batch is made, and fewer than one page for
// kSamplesAPage samples do not count: of samples in random order each one that is not in memory
// costs a page at least. Who is wrong about it is slower for a while, nothing more.
//
// It costs two system calls a batch. Where the kernel does not count (a sandbox), all seems to be
// in memory.
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
  uint64_t blocks_read_ = 0;           // in them
  uint64_t samples_ = 0;               // of them
  uint32_t warm_batches_ = 0;          // without a block, from the disk
};

}  // namespace lockstep::data
