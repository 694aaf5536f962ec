#include "metrics/node/node_probe.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>

#include <filesystem>
#include <utility>

namespace lockstep {

NodeProbe::NodeProbe(Families& families, std::string run_dir)
    : run_dir_(std::move(run_dir)),
      cpus_(families.gauge("lockstep_node_cpus", "Processors of the machine.")),
      memory_(families.gauge("lockstep_node_memory_bytes", "Memory of the machine.")),
      memory_available_(families.gauge("lockstep_node_memory_available_bytes",
                                       "Memory available without swapping.")),
      disk_read_(families.counter("lockstep_node_disk_read_bytes_total",
                                  "Read from the machine's disks.")),
      disk_written_(families.counter("lockstep_node_disk_written_bytes_total",
                                     "Written to the machine's disks.")),
      network_received_(families.counter("lockstep_node_network_received_bytes_total",
                                         "Received over all interfaces but loopback.")),
      network_sent_(families.counter("lockstep_node_network_sent_bytes_total",
                                     "Sent over all interfaces but loopback.")),
      run_dir_bytes_(families.gauge("lockstep_node_run_dir_bytes",
                                    "Size of the file system that holds the run directory.")),
      run_dir_available_(families.gauge("lockstep_node_run_dir_available_bytes",
                                        "Room left in the run directory's file system.")) {
  for (size_t i = 0; i < kCpuModes.size(); ++i) {
    cpu_seconds_[i] =
        &families.counter("lockstep_node_cpu_seconds_total", "Time of all processors in each mode.",
                          {{"mode", kCpuModes[i]}});
  }
}

void NodeProbe::refresh() {
  const NodeUsage usage = read_node_usage();
  cpus_.Set(usage.cpus);
  for (size_t i = 0; i < kCpuModes.size(); ++i) raise_to(*cpu_seconds_[i], usage.cpu_seconds[i]);
  memory_.Set(usage.memory_bytes);
  memory_available_.Set(usage.memory_available_bytes);
  raise_to(disk_read_, usage.disk_read_bytes);
  raise_to(disk_written_, usage.disk_written_bytes);
  raise_to(network_received_, usage.network_received_bytes);
  raise_to(network_sent_, usage.network_sent_bytes);
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(run_dir_, error);
  if (error) return;
  run_dir_bytes_.Set(static_cast<double>(space.capacity));
  run_dir_available_.Set(static_cast<double>(space.available));
}

}  // namespace lockstep
