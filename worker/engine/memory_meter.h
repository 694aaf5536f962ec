// How much memory a step may take, and how much a step has taken. The search for the largest slot
// (largest_slot.h) asks this while it tries sizes.
//
// Errors: kInternal if the system or the device does not say.
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

  // Starts counting. Returns this worker's share, in bytes, of the memory that is free now.
  virtual Result<uint64_t> begin() = 0;
  // The most memory in use at a time since begin(), beyond what was in use at begin(). In bytes.
  virtual Result<uint64_t> taken() = 0;
  // Gives back the memory that allocators keep for later.
  virtual void settle() = 0;
};

// The files in which the system reports memory. Tests have files of their own.
struct HostMemoryFiles {
  std::string proc = "/proc";
  std::string cgroup = "/sys/fs/cgroup";
};

// Bytes that this process could still take: the memory that the machine has available, or less if a
// control group (version 1 or 2) above the process sets a limit. Both count cached files that are
// not in use as free.
Result<uint64_t> available_memory(const HostMemoryFiles& files);

// This machine's memory, in equal shares for `workers` workers. Memory in use means resident
// memory.
std::unique_ptr<MemoryMeter> make_host_meter(uint32_t workers, HostMemoryFiles files = {});

}  // namespace lockstep
