#include "metrics/probes/process_probe.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

namespace lockstep {
namespace {

std::string read_text(const char* path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// The start of the machine, in seconds since 1970, from /proc/stat.
double boot_time_seconds() {
  std::istringstream lines(read_text("/proc/stat"));
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("btime ", 0) == 0) return std::stod(line.substr(6));
  }
  return 0;
}

}  // namespace

std::optional<ProcessUsage> read_process_usage() {
  const std::string stat = read_text("/proc/self/stat");
  // The command name, field 2, is in parentheses and may hold anything. Count after the last ')'.
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream rest(stat.substr(name_end + 1));
  const std::vector<std::string> fields{std::istream_iterator<std::string>(rest), {}};
  constexpr size_t kFirst = 3;  // proc(5) counts fields from 1; the first after ')' is the third
  constexpr size_t kUtime = 14, kStime = 15, kThreads = 20, kStart = 22, kRss = 24;
  if (fields.size() <= kRss - kFirst) return std::nullopt;
  const auto field = [&](size_t number) { return std::stod(fields[number - kFirst]); };
  const double ticks = static_cast<double>(sysconf(_SC_CLK_TCK));

  ProcessUsage usage;
  usage.start_time_seconds = boot_time_seconds() + field(kStart) / ticks;
  usage.cpu_seconds = (field(kUtime) + field(kStime)) / ticks;
  usage.resident_bytes = static_cast<int64_t>(field(kRss)) * sysconf(_SC_PAGESIZE);
  usage.threads = static_cast<int64_t>(field(kThreads));
  std::error_code error;
  for (std::filesystem::directory_iterator it("/proc/self/fd", error), end; !error && it != end;
       it.increment(error)) {
    ++usage.open_files;
  }
  return usage;
}

ProcessProbe::ProcessProbe(Families& families)
    : start_time_(families.gauge("lockstep_process_start_time_seconds",
                                 "Start of the process, seconds since 1970-01-01 UTC.")),
      cpu_(families.counter("lockstep_process_cpu_seconds_total",
                            "Processor time of all threads, user and system.")),
      resident_(families.gauge("lockstep_process_resident_memory_bytes", "Memory in RAM.")),
      threads_(families.gauge("lockstep_process_threads", "Threads of the process.")),
      open_files_(families.gauge("lockstep_process_open_files", "Open file descriptors.")) {}

void ProcessProbe::refresh() {
  const std::optional<ProcessUsage> usage = read_process_usage();
  if (!usage) return;
  start_time_.Set(usage->start_time_seconds);
  raise_to(cpu_, usage->cpu_seconds);
  resident_.Set(static_cast<double>(usage->resident_bytes));
  threads_.Set(static_cast<double>(usage->threads));
  open_files_.Set(static_cast<double>(usage->open_files));
}

}  // namespace lockstep
