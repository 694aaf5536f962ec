#include "metrics/node/node_usage.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "comm/base/byte_units.h"

namespace lockstep {
namespace {

constexpr double kSectorBytes = 512;  // the unit of /proc/diskstats on any disk

// "cpu  user nice system idle iowait irq softirq steal ..." in ticks, then one line a processor.
void read_processors(const std::string& root, NodeUsage& usage) {
  std::ifstream in(root + "proc/stat");
  const double ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  for (std::string line; std::getline(in, line) && line.rfind("cpu", 0) == 0;) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    if (name != "cpu") {
      ++usage.cpus;
      continue;
    }
    double user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, steal = 0;
    words >> user >> nice >> system >> idle >> iowait >> irq >> softirq >> steal;
    usage.cpu_seconds = {(user + nice) / ticks, (system + irq + softirq) / ticks, idle / ticks,
                         iowait / ticks, steal / ticks};
  }
}

void read_memory(const std::string& root, NodeUsage& usage) {
  std::ifstream in(root + "proc/meminfo");
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string name;
    double kib = 0;
    words >> name >> kib;
    if (name == "MemTotal:") usage.memory_bytes = kib * static_cast<double>(kKib);
    if (name == "MemAvailable:") usage.memory_available_bytes = kib * static_cast<double>(kKib);
  }
}

// "major minor name reads merged sectors ms writes merged sectors ..."
void read_disks(const std::string& root, NodeUsage& usage) {
  std::ifstream in(root + "proc/diskstats");
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string name;
    double skipped = 0, read = 0, written = 0;
    words >> skipped >> skipped >> name >> skipped >> skipped >> read;
    words >> skipped >> skipped >> skipped >> written;
    // Only a disk has a device: no partition, loop, memory disk, RAID or volume has one.
    std::error_code error;
    if (!words || !std::filesystem::exists(root + "sys/block/" + name + "/device", error)) continue;
    usage.disk_read_bytes += read * kSectorBytes;
    usage.disk_written_bytes += written * kSectorBytes;
  }
}

// "  name: bytes packets errs drop fifo frame compressed multicast  bytes ...", after two headings.
void read_network(const std::string& root, NodeUsage& usage) {
  std::ifstream in(root + "proc/net/dev");
  for (std::string line; std::getline(in, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const size_t begin = line.find_first_not_of(' ');
    const std::string name = line.substr(begin, colon - begin);
    std::istringstream words(line.substr(colon + 1));
    double received = 0, skipped = 0, sent = 0;
    words >> received;
    for (int i = 0; i < 7; ++i) words >> skipped;
    words >> sent;
    if (!words || name == "lo") continue;
    usage.network_received_bytes += received;
    usage.network_sent_bytes += sent;
  }
}

}  // namespace

NodeUsage read_node_usage(const std::string& root) {
  NodeUsage usage;
  read_processors(root, usage);
  read_memory(root, usage);
  read_disks(root, usage);
  read_network(root, usage);
  return usage;
}

}  // namespace lockstep
