#include "comm/environment/usable_cores.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "comm/base/file.h"

namespace lockstep {
namespace {

constexpr size_t kMembershipBytes = 64 * 1024;

struct Quota {
  double us = 0;  // of every period; 0: none
  double period_us = 0;
};

double number_in(const std::string& path) {
  std::ifstream file(path);
  double number = 0;
  return file >> number ? number : 0;
}

// The quota of one group. Version 2 has "max 100000" or "150000 100000" in one file, version 1 two
// files.
Quota quota_of(const std::string& group, bool is_version_2) {
  Quota quota;
  if (is_version_2) {
    std::ifstream file(group + "/cpu.max");
    if (!(file >> quota.us >> quota.period_us)) return {};
  } else {
    quota = {number_in(group + "/cpu.cfs_quota_us"), number_in(group + "/cpu.cfs_period_us")};
  }
  return quota;
}

void look_up(const std::string& mount, std::string group, bool is_version_2,
             std::optional<double>& cores) {
  while (true) {
    const Quota quota = quota_of(mount + group, is_version_2);
    if (quota.us > 0 && quota.period_us > 0) {
      const double here = quota.us / quota.period_us;
      cores = cores ? std::min(*cores, here) : here;
    }
    if (group.empty()) return;
    group.erase(group.rfind('/'));
  }
}

bool holds_cpu(const std::string& controllers) {
  std::istringstream all(controllers);
  for (std::string each; std::getline(all, each, ',');)
    if (each == "cpu") return true;
  return false;
}

}  // namespace

std::optional<uint32_t> quota_cores(const std::string& memberships, const std::string& mount) {
  std::optional<double> cores;
  std::istringstream lines(memberships);
  for (std::string line; std::getline(lines, line);) {  // "0::/group" or "4:cpu,cpuacct:/group"
    const size_t first = line.find(':');
    const size_t second = line.find(':', first == std::string::npos ? first : first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    std::string group = line.substr(second + 1);
    if (group.empty() || group[0] != '/') continue;
    if (group.back() == '/') group.pop_back();
    if (controllers.empty()) look_up(mount, group, true, cores);
    if (!holds_cpu(controllers)) continue;
    look_up(mount + "/" + controllers, group, false, cores);
    if (controllers != "cpu") look_up(mount + "/cpu", group, false, cores);
  }
  if (!cores) return std::nullopt;
  return static_cast<uint32_t>(std::clamp(*cores, 1.0, 1e6));
}

uint32_t usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const bool is_known = ::sched_getaffinity(0, sizeof set, &set) == 0;
  const auto may_run_on = static_cast<uint32_t>(is_known ? std::max(1, CPU_COUNT(&set)) : 1);
  const auto memberships = read_file("/proc/self/cgroup", kMembershipBytes);
  const auto quota =
      memberships.is_ok() ? quota_cores(*memberships, "/sys/fs/cgroup") : std::nullopt;
  return quota ? std::min(may_run_on, *quota) : may_run_on;
}

}  // namespace lockstep
