// GPUs that the stand-in for NVML shows (fake_nvml.cc).
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace lockstep::test {

// From its making to its end; one at a time.
class FakeGpus {
 public:
  // The same file for all of a process: a thread that is still running may be reading the name.
  FakeGpus() : path_("/tmp/lockstep-gpus-" + std::to_string(::getpid())) {
    ::setenv("FAKE_NVML", path_.c_str(), 0);
  }
  ~FakeGpus() { std::filesystem::remove(path_); }
  FakeGpus(const FakeGpus&) = delete;
  FakeGpus& operator=(const FakeGpus&) = delete;

  // Replaces all that it said before. The file is renamed into its place: it may be asked at any
  // moment.
  void say(const std::string& lines) {
    std::ofstream(path_ + ".new") << lines;
    std::filesystem::rename(path_ + ".new", path_);
  }

 private:
  const std::string path_;
};

// Two GPUs that each do what a GPU can.
inline constexpr char kBusyGpus[] =
    "devices 2\n"
    "utilization 75\n"
    "memory_utilization 40\n"
    "memory 80000000000\n"
    "memory_used 60000000000\n"
    "power 350500\n"
    "power_limit 700000\n"
    "temperature 65\n"
    "clock 1980\n"
    "throttle 4\n"
    "ecc 0\n";

}  // namespace lockstep::test
