// Thread-safety: free function; any thread.
#pragma once

#include <unistd.h>

#include <cstdint>

namespace lockstep::data {

// The memory of the whole machine, used or free.
inline uint64_t machine_memory_bytes() {
  return static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
         static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace lockstep::data
