// The number of cores that this process may use: the cores that it may run on (taskset, cpusets),
// and no more than the quota of its control group pays for (containers, cpu.max and
// cpu.cfs_quota_us).
//
// Thread-safety: free functions; read /proc and /sys.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep {

// At least 1.
uint32_t usable_cores();

// The smallest quota on the way from a control group to the top, in whole cores, at least 1; none
// if nothing limits it. `memberships`: the text of /proc/self/cgroup; `mount`: where the groups are
// mounted, /sys/fs/cgroup.
std::optional<uint32_t> quota_cores(const std::string& memberships, const std::string& mount);

}  // namespace lockstep
