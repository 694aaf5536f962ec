// The kernel's figures about this machine: processors, memory, disks, network. Source of the
// formats: proc(5) and the kernel's Documentation/admin-guide/iostats.rst.
//
// Errors: a value that cannot be read or parsed is 0, as on a machine without such a device.
//
// Thread-safety: pure functions of the file system.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace lockstep {

inline constexpr std::array kCpuModes = {"user", "system", "idle", "iowait", "steal"};

struct NodeUsage {
  uint32_t cpus = 0;                                      // online
  std::array<double, kCpuModes.size()> cpu_seconds = {};  // of all processors, since the boot
  double memory_bytes = 0;
  double memory_available_bytes = 0;  // without swapping
  // Whole disks only: a partition, and a volume on top of disks, would count the same bytes twice.
  double disk_read_bytes = 0;
  double disk_written_bytes = 0;
  // All interfaces except loopback.
  double network_received_bytes = 0;
  double network_sent_bytes = 0;
};

// `root`: the directory of proc/ and sys/, with a slash at the end.
NodeUsage read_node_usage(const std::string& root = "/");

}  // namespace lockstep
