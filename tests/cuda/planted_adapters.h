// A sysfs of the test's own, with InfiniBand adapters of one port.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/temporary_directory.h"

namespace lockstep::testing {

class PlantedAdapters {
 public:
  std::string path() const { return directory_.path(); }

  // `way`: below /sys/devices.
  void plant_gpu(const std::string& way) const {
    const auto device = make_device(way);
    const auto list = std::filesystem::path(path()) / "bus/pci/devices";
    std::filesystem::create_directories(list);
    std::filesystem::create_directory_symlink(device, list / device.filename());
  }
  void plant(const std::string& adapter, const std::string& way) const {
    std::filesystem::create_directories(of(adapter) / "ports/1/counters");
    std::filesystem::create_directory_symlink(make_device(way), of(adapter) / "device");
    set(adapter, "4: ACTIVE", 0);
  }
  void set(const std::string& adapter, const std::string& state, int times_down) const {
    std::ofstream(of(adapter) / "ports/1/state") << state << "\n";
    std::ofstream(of(adapter) / "ports/1/counters/link_downed") << times_down << "\n";
  }

 private:
  std::filesystem::path of(const std::string& adapter) const {
    return std::filesystem::path(path()) / "class/infiniband" / adapter;
  }
  std::filesystem::path make_device(const std::string& way) const {
    auto device = std::filesystem::path(path()) / "devices" / way;
    std::filesystem::create_directories(device);
    return device;
  }

  const TemporaryDirectory directory_;
};

}  // namespace lockstep::testing
