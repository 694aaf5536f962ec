// How much memory there is for a step, and how much one has taken: what the search for the largest
// slot (largest_slot.h) asks while it tries sizes.
//
// Errors: kInternal when the system or the device does not say.
//
// Thread-safety: the training thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "comm/base/status.h"

namespace lockstep {

class MemoryMeter {
 public:
  virtual ~MemoryMeter() = default;

  // Counts from here. Gives this worker's share, in bytes, of what is free for it to take now.
  virtual Result<uint64_t> begin() = 0;
  // The most that was in use at a time since begin(), beyond what was in use then.
  virtual Result<uint64_t> taken() = 0;
  // Gives back what allocators keep for later.
  virtual void settle() = 0;
};

// Where the system tells of memory; tests have files of their own.
struct HostMemoryFiles {
  std::string proc = "/proc";
  std::string cgroup = "/sys/fs/cgroup";
};

// Bytes that this process could still take: what the machine has available, or less where a control
// group (version 1 or 2) above the process sets a limit. Cached files that are not in use count as
// free in both.
Result<uint64_t> available_memory(const HostMemoryFiles& files);

// This machine's memory, of which `workers` take equal shares. In use is what is resident.
std::unique_ptr<MemoryMeter> make_host_meter(uint32_t workers, HostMemoryFiles files = {});

}  // namespace lockstep
