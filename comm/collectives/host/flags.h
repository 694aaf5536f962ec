// A rank's progress for its peers: a few flags in memory that only the rank writes.
//
// INVARIANTS
//  F1 Every field has one writer, the owner of the block (`closed`: any of the owner's threads).
//  F2 A flag is a Mark: (generation, number of the operation in it). It only grows.
//  F3 ops[n % kOpRing] describes operation n once `published` has reached n. A rank is never more
//     than one operation ahead of another, because every operation waits for all to publish it.
//  F4 After a flag grows, the owner changes the doorbell and then wakes its sleepers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "comm/base/byte_units.h"
#include "comm/base/ids.h"
#include "comm/base/prng.h"
#include "comm/collectives/collective.h"

namespace lockstep::host {

// Progress of one rank: generation in the upper 24 bits, operation in the lower 40.
using Mark = uint64_t;
inline constexpr int kOperationBits = 40;
inline constexpr Generation kMostGenerations = (uint64_t{1} << (64 - kOperationBits)) - 1;

constexpr Mark make_mark(Generation generation, uint64_t operation) {
  return generation << kOperationBits | operation;
}
constexpr Generation generation_of(Mark mark) {
  return mark >> kOperationBits;
}

enum class OpKind : uint32_t { kNone = 0, kAllReduce, kBroadcast, kAllGather, kBarrier };

// Everything that ranks must agree on about an operation (C4). Plain bytes: ranks compare them in
// shared memory and send them over TCP as they are.
struct OpDescriptor {
  Mark mark = 0;
  uint64_t step = 0;
  uint64_t bytes = 0;
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t merge_hash = 0;  // for all_reduce: agreed_hash()
  uint32_t bucket = 0;
  uint32_t phase = 0;
  OpKind kind = OpKind::kNone;
  uint32_t root = 0;
  bool operator==(const OpDescriptor&) const = default;
};

// The hash on which ranks must agree in an all_reduce besides its tag: of the StepMerge, and of
// what their devices did before.
inline uint64_t agreed_hash(uint64_t merge_hash, const Tag& tag) {
  return tag.device_operations == 0 ? merge_hash : stream_key({merge_hash, tag.device_operations});
}

// The caller sets `op.merge_hash` and `op.root`, if the kind has them.
inline OpDescriptor describe(Mark mark, OpKind kind, const Tag& tag, const ElementRange& range) {
  OpDescriptor op;
  op.mark = mark;
  op.step = tag.step;
  op.bytes = tag.bytes;
  op.begin = range.begin;
  op.end = range.end;
  op.bucket = tag.bucket;
  op.phase = static_cast<uint32_t>(tag.phase);
  op.kind = kind;
  return op;
}

inline constexpr size_t kOpRing = 4;

struct FlagBlock {
  alignas(64) std::atomic<uint32_t> doorbell{0};  // futex word
  alignas(64) std::atomic<Mark> published{0};  // peers can read this rank's part of the operation
  alignas(64) std::atomic<Mark> result{0};     // peers can read this rank's slice of the sum
  alignas(64) std::atomic<Mark> read{0};       // this rank has read all it needs of its peers
  alignas(64) std::atomic<Generation> closed{0};  // nothing of generations up to this one counts
  alignas(64) std::atomic<uint32_t> sleeping{0};  // the owner may be asleep on a peer's doorbell
  alignas(64) OpDescriptor ops[kOpRing];
};

using Flag = std::atomic<Mark> FlagBlock::*;

// The payload of one step of a small operation; larger operations take several steps. There are two
// halves, used in turn: when an operation starts, all ranks have finished the one before the last.
inline constexpr size_t kMailboxBytes = 256 * kKib;

inline constexpr uint64_t kControlMagic = 0x316c72746374736cULL;

struct ControlBlock {
  uint64_t magic = kControlMagic;
  FlagBlock flags;
  alignas(64) std::byte mailbox[2][kMailboxBytes];
};

static_assert(std::atomic<Mark>::is_always_lock_free, "flags are read by other processes");

}  // namespace lockstep::host
