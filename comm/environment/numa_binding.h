// Binds the calling thread, and the threads that it starts from then on, to the NUMA node of a
// device: to the node's cores, and memory to the node's memory as far as it goes. Memory that is
// pinned for copies to a GPU lies next to it then.
//
// Settings of the site stay (taskset, numactl, cpuset, Slurm's --cpu-bind): the thread keeps only
// cores that it has already, and a memory policy that is not the default. If no core would be left,
// if the machine names no node, or if the kernel refuses, the thread is not bound, and the words
// say so.
//
// Thread-safety: any thread; it changes the calling thread.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "comm/base/status.h"

namespace lockstep {

// The binding's calls to the kernel. Each error is an errno; 0: none.
class NumaSystem {
 public:
  virtual ~NumaSystem() = default;
  virtual std::string sysfs() const { return "/sys"; }
  virtual int allowed_cores(std::set<int>* cores) const;
  virtual int run_on(const std::set<int>& cores);
  virtual int has_own_policy(bool* has) const;  // of memory, not the default one
  virtual int prefer_memory_of(int node);
};

struct NumaWanted {
  std::string pci;           // of the device: "0000:3b:00.0", in either case
  bool keeps_cores = false;  // binds memory alone
};

// A sentence for people, without its end: "NUMA node 1: 32 cores and memory".
std::string bind_to_numa_node(const NumaWanted& wanted, NumaSystem& system);

// "0-3,8,10-11", as in sysfs; nothing if the text is no list, or names more than 65,536 cores.
std::optional<std::set<int>> parse_core_list(std::string_view text);

}  // namespace lockstep
