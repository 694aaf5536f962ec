#include "comm/environment/numa_binding.h"

#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <iterator>
#include <memory>
#include <vector>

#include "comm/base/file.h"
#include "comm/environment/sysfs.h"

namespace lockstep {
namespace {

constexpr int kMostCores = 65'536;
constexpr int kMostNodes = 1'024;  // of the kernel's masks
constexpr size_t kNodeWords = kMostNodes / (8 * sizeof(unsigned long));

struct FreeSet {
  void operator()(cpu_set_t* set) const { CPU_FREE(set); }
};
using CoreSet = std::unique_ptr<cpu_set_t, FreeSet>;

std::optional<int> number_at(std::string_view& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

struct Node {
  int number = -1;
  std::set<int> cores;
};

std::optional<Node> node_of(const std::string& pci, const NumaSystem& system) {
  const std::string device = pci_directory(system.sysfs(), pci);
  if (device.empty()) return std::nullopt;
  const auto number = sysfs_line(device + "/numa_node");
  const auto cores = sysfs_line(device + "/local_cpulist");
  if (!number || !cores) return std::nullopt;
  std::string_view text = *number;
  const auto node = number_at(text);
  auto list = parse_core_list(*cores);
  if (!node || !text.empty() || *node < 0 || *node >= kMostNodes || !list) return std::nullopt;
  return Node{*node, std::move(*list)};
}

std::string cores_text(size_t cores) {
  return std::to_string(cores) + (cores == 1 ? " core" : " cores");
}

// Empty if the memory is bound.
std::string bind_memory(int node, NumaSystem& system) {
  bool has_own = false;
  if (const int error = system.has_own_policy(&has_own); error != 0)
    return "memory is not bound (" + errno_text(error) + ")";
  if (has_own) return "memory keeps the policy that the site has set";
  if (const int error = system.prefer_memory_of(node); error != 0)
    return "memory is not bound (" + errno_text(error) + ")";
  return "";
}

}  // namespace

int NumaSystem::allowed_cores(std::set<int>* cores) const {
  const CoreSet set(CPU_ALLOC(kMostCores));
  const size_t bytes = CPU_ALLOC_SIZE(kMostCores);
  if (set == nullptr) return ENOMEM;
  CPU_ZERO_S(bytes, set.get());
  if (::sched_getaffinity(0, bytes, set.get()) != 0) return errno;
  for (int core = 0; core < kMostCores; ++core)
    if (CPU_ISSET_S(static_cast<size_t>(core), bytes, set.get())) cores->insert(core);
  return 0;
}

int NumaSystem::run_on(const std::set<int>& cores) {
  const CoreSet set(CPU_ALLOC(kMostCores));
  const size_t bytes = CPU_ALLOC_SIZE(kMostCores);
  if (set == nullptr) return ENOMEM;
  CPU_ZERO_S(bytes, set.get());
  for (const int core : cores) CPU_SET_S(static_cast<size_t>(core), bytes, set.get());
  return ::sched_setaffinity(0, bytes, set.get()) == 0 ? 0 : errno;
}

// libnuma would be a library more for these two calls.
int NumaSystem::has_own_policy(bool* has) const {
  int mode = MPOL_DEFAULT;
  if (::syscall(SYS_get_mempolicy, &mode, nullptr, 0UL, nullptr, 0UL) != 0) return errno;
  *has = mode != MPOL_DEFAULT;
  return 0;
}

int NumaSystem::prefer_memory_of(int node) {
  std::array<unsigned long, kNodeWords> mask = {};
  const auto bit = static_cast<size_t>(node);
  constexpr size_t kBits = 8 * sizeof(unsigned long);
  mask[bit / kBits] = 1UL << bit % kBits;
  return ::syscall(SYS_set_mempolicy, MPOL_PREFERRED, mask.data(), kMostNodes + 1UL) == 0 ? 0
                                                                                          : errno;
}

std::optional<std::set<int>> parse_core_list(std::string_view text) {
  text = without_end(text);
  std::set<int> cores;
  while (!text.empty()) {
    const auto first = number_at(text);
    auto last = first;
    if (text.starts_with("-")) {
      text.remove_prefix(1);
      last = number_at(text);
    }
    if (!first || !last || *first < 0 || *last < *first || *last >= kMostCores) return std::nullopt;
    for (int core = *first; core <= *last; ++core) cores.insert(core);
    if (text.empty()) break;
    if (!text.starts_with(",") || text.size() == 1) return std::nullopt;
    text.remove_prefix(1);
  }
  return cores;
}

std::string bind_to_numa_node(const NumaWanted& wanted, NumaSystem& system) {
  const auto node = node_of(wanted.pci, system);
  if (!node) return "not bound: the machine names no NUMA node of GPU " + wanted.pci;
  const std::string name = "NUMA node " + std::to_string(node->number);
  std::set<int> allowed;
  if (const int error = system.allowed_cores(&allowed); error != 0)
    return name + ": not bound (" + errno_text(error) + ")";
  std::set<int> both;
  std::set_intersection(allowed.begin(), allowed.end(), node->cores.begin(), node->cores.end(),
                        std::inserter(both, both.end()));
  if (both.empty())
    return name +
           ": not bound, because none of its cores is among those that the site gives this "
           "worker";
  std::string cores;
  if (!wanted.keeps_cores) {
    const int error = both == allowed ? 0 : system.run_on(both);
    cores =
        error == 0 ? cores_text(both.size()) : "cores are not bound (" + errno_text(error) + ")";
  }
  const std::string memory = bind_memory(node->number, system);
  if (cores.empty()) return name + ": " + (memory.empty() ? "memory" : memory);
  return name + ": " + cores + (memory.empty() ? " and memory" : "; " + memory);
}

}  // namespace lockstep
