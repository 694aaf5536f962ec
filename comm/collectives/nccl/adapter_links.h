// The links of this machine's InfiniBand and RoCE adapters, as the kernel shows them in sysfs.
//
// NCCL calls a transfer that failed over such an adapter a remote error, at both ends, so its
// answer does not tell whose adapter failed. The kernel of that machine does: a port is not active
// any more, or has lost its link once more.
//
// Where a machine has no adapter, or hides sysfs, there is never any trouble.
//
// Thread-safety: one thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace lockstep::nccl {

struct AdapterTrouble {
  std::string what;      // "port 1 of mlx5_3 is not active (1: DOWN)"
  bool is_near = false;  // no other adapter is nearer to the GPU, so NCCL takes this one for it
};

class AdapterLinks {
 public:
  // `pci`: of the worker's GPU, "0000:3b:00.0"; empty: no adapter is near. `sysfs`: mostly "/sys".
  AdapterLinks(std::string pci, std::string sysfs);

  // From here on a lost link is trouble.
  void begin();
  // The trouble of one adapter: of a near one, if a near one has any.
  std::optional<AdapterTrouble> trouble() const;

 private:
  using Port = std::pair<std::string, std::string>;  // adapter, number
  struct Seen {
    std::string state;                   // "4: ACTIVE"
    std::optional<uint64_t> times_down;  // nothing: the port does not count
    bool is_active() const { return state.starts_with("4"); }
  };
  std::map<Port, Seen> look() const;
  std::set<std::string> near_adapters() const;

  const std::string pci_;
  const std::string sysfs_;
  std::map<Port, Seen> before_;
  std::set<Port> once_active_;  // NCCL uses no others
};

}  // namespace lockstep::nccl
