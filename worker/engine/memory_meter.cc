#include "worker/engine/memory_meter.h"

#include <malloc.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <utility>

#include "comm/base/byte_units.h"
#include "comm/base/file.h"
#include "comm/base/limits.h"

namespace lockstep {
namespace {

std::string text_of(const std::string& path) {
  auto text = read_file(path, limits::kSystemFileBytes);
  return text.is_ok() ? *text : std::string();
}

// The number after `key` at the start of a line; the first number where there is no key.
std::optional<uint64_t> number_of(const std::string& text, const std::string& key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.compare(0, key.size(), key) != 0) continue;
    const size_t begin = line.find_first_not_of(" \t", key.size());
    if (begin == std::string::npos) continue;
    uint64_t value = 0;
    const auto read = std::from_chars(line.data() + begin, line.data() + line.size(), value);
    if (read.ec == std::errc()) return value;
  }
  return std::nullopt;
}

// The names of one version's files in a group's directory.
struct GroupFiles {
  const char* limit;
  const char* usage;
  const char* idle;  // in memory.stat: cached files not touched for long
};
constexpr GroupFiles kVersion1 = {"/memory.limit_in_bytes", "/memory.usage_in_bytes",
                                  "total_inactive_file"};
constexpr GroupFiles kVersion2 = {"/memory.max", "/memory.current", "inactive_file"};

// Nothing: the group sets no limit ("max"), or there is no such directory here, as in a container
// that sees the names of the groups but only its own files.
std::optional<uint64_t> room_in_group(const std::string& directory, const GroupFiles& names) {
  const auto limit = number_of(text_of(directory + names.limit), "");
  const auto usage = number_of(text_of(directory + names.usage), "");
  if (!limit || !usage) return std::nullopt;
  const uint64_t idle = number_of(text_of(directory + "/memory.stat"), names.idle).value_or(0);
  const uint64_t in_use = *usage - std::min(*usage, idle);
  return *limit - std::min(*limit, in_use);
}

// Every group above the process may set a limit; `path` is the process's, as in /proc/self/cgroup.
uint64_t room_in_groups(const std::string& root, std::string path, const GroupFiles& names) {
  uint64_t room = std::numeric_limits<uint64_t>::max();
  for (;;) {
    while (!path.empty() && path.back() == '/') path.pop_back();
    room = std::min(room, room_in_group(root + path, names).value_or(room));
    if (path.empty()) return room;
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
}

class HostMeter final : public MemoryMeter {
 public:
  HostMeter(uint32_t workers, HostMemoryFiles files)
      : workers_(std::max(1u, workers)), files_(std::move(files)) {}

  Result<uint64_t> begin() override {
    settle();
    // Resets the peak where the system can do that. Otherwise an older peak may count, and the slot
    // becomes smaller than it could be.
    std::ofstream(files_.proc + "/self/clear_refs") << "5";
    LOCKSTEP_ASSIGN_OR_RETURN(before_, status("VmRSS:"));
    LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t available, available_memory(files_));
    return available / workers_;
  }

  Result<uint64_t> taken() override {
    LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t peak, status("VmHWM:"));
    return peak - std::min(peak, before_);
  }

  void settle() override { ::malloc_trim(0); }

 private:
  Result<uint64_t> status(const std::string& key) const {
    const std::string path = files_.proc + "/self/status";
    if (const auto kib = number_of(text_of(path), key)) return *kib * kKib;
    return Status(Code::kInternal, path + " has no " + key);
  }

  const uint32_t workers_;
  const HostMemoryFiles files_;
  uint64_t before_ = 0;
};

}  // namespace

Result<uint64_t> available_memory(const HostMemoryFiles& files) {
  const std::string path = files.proc + "/meminfo";
  const auto available = number_of(text_of(path), "MemAvailable:");
  if (!available) return Status(Code::kInternal, path + " has no MemAvailable:");
  uint64_t room = *available * kKib;
  std::istringstream groups(text_of(files.proc + "/self/cgroup"));
  for (std::string line; std::getline(groups, line);) {  // number:controllers:path
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) room = std::min(room, room_in_groups(files.cgroup, group, kVersion2));
    if (controllers == "memory")
      room = std::min(room, room_in_groups(files.cgroup + "/memory", group, kVersion1));
  }
  return room;
}

std::unique_ptr<MemoryMeter> make_host_meter(uint32_t workers, HostMemoryFiles files) {
  return std::make_unique<HostMeter>(workers, std::move(files));
}

}  // namespace lockstep
