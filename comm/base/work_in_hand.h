// The samples that a worker is at, in memory that outlives it: whoever started the worker reads
// there of what it died, however it died. One slot of one step is read by the loader, perhaps some
// steps ahead; one is computed, from its forward pass until its step is applied.
//
//   agent ── make() ──▶ memory without a name ── descriptor ──▶ worker: attach(), reads(),
//   computes()
//     └───────────── get(), after the worker was reaped ◀──────────────┘
//
// Errors: kInternal when the kernel gives no memory, kConfig when a descriptor is not of such
// memory. A mark costs one relaxed store.
//
// Thread-safety: any thread; of the reader's marks and of the computing one's, one thread each.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/base/ids.h"
#include "comm/base/status.h"

namespace lockstep {

struct SlotInHand {
  Step step = 0;
  uint32_t slot = 0;
  bool is_read = false;  // else it is computed
  bool operator==(const SlotInHand&) const = default;
};

// What one process had in hand.
struct InHand {
  uint64_t process = 0;           // no other one has this number; pids come again
  std::vector<SlotInHand> slots;  // what is read first; at most two
};

class WorkInHand {
 public:
  WorkInHand(WorkInHand&&) noexcept;
  WorkInHand& operator=(WorkInHand&&) noexcept;
  ~WorkInHand();

  // Nothing is in hand yet, of a process with a new number. The memory goes with the last process
  // that has it.
  static Result<WorkInHand> make();
  // Of a process that was given `descriptor`, which is closed by this.
  static Result<WorkInHand> attach(int descriptor);

  int descriptor() const { return descriptor_; }  // valid after make()

  void reads(Step step, uint32_t slot);
  void has_read();
  void computes(Step step, uint32_t slot);
  void has_applied();

  InHand get() const;

 private:
  struct Marks;
  static Result<WorkInHand> map(int descriptor);
  WorkInHand(int descriptor, Marks* marks) : descriptor_(descriptor), marks_(marks) {}

  int descriptor_ = -1;
  Marks* marks_ = nullptr;
};

}  // namespace lockstep
