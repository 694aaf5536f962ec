// The samples that a worker works on, in memory that outlives the worker. The worker's starter
// reads there which samples it held when it died, however it died, whether it had registered, and
// on which GPU it was. The loader reads one slot of one step, perhaps some steps ahead. The engine
// computes one, from its forward until the sums of its step are there.
//
//   agent ── make() ─▶ memory without a name ── descriptor ─▶ worker: attach(), reads(), computes()
//     └──────────── get(), after the worker was reaped ◀────────────┘
//
// Errors: kInternal if the kernel gives no memory, kConfig if a descriptor belongs to other memory.
// A mark costs one relaxed store.
//
// Thread-safety: any thread. One thread sets the reading marks, and one sets the computing marks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/base/ids.h"
#include "comm/base/status.h"

namespace lockstep {

struct SlotInHand {
  Step step = 0;
  uint32_t slot = 0;
  bool is_read = false;  // else the worker computes it
  bool operator==(const SlotInHand&) const = default;
};

// The marks of one process.
struct InHand {
  uint64_t process = 0;           // unique to the process, because the kernel reuses pids
  std::vector<SlotInHand> slots;  // the slot that is read comes first; at most two
};

class WorkInHand {
 public:
  WorkInHand(WorkInHand&&) noexcept;
  WorkInHand& operator=(WorkInHand&&) noexcept;
  ~WorkInHand();

  // Makes memory without marks, for a process with a new number. The last process that maps the
  // memory frees it.
  static Result<WorkInHand> make();
  // Maps the memory in a process that was given `descriptor`. Closes `descriptor`.
  static Result<WorkInHand> attach(int descriptor);

  int descriptor() const { return descriptor_; }  // valid after make()

  void reads(Step step, uint32_t slot);
  void has_read();
  void computes(Step step, uint32_t slot);
  void has_computed();

  // The coordinator has taken the worker in. It stays so for this process.
  void has_been_registered();
  bool has_registered() const;

  // The UUID of the worker's GPU, 32 hex digits (GpuIdentity). Other text changes nothing.
  void is_on_gpu(const std::string& uuid);
  std::string gpu() const;  // empty: none was told

  InHand get() const;

 private:
  struct Marks;
  static Result<WorkInHand> map(int descriptor);
  WorkInHand(int descriptor, Marks* marks) : descriptor_(descriptor), marks_(marks) {}

  int descriptor_ = -1;
  Marks* marks_ = nullptr;
};

}  // namespace lockstep
