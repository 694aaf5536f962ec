// A directory that goes with its test, its simulation or its fuzzer.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include "comm/base/check.h"

namespace lockstep {

class TemporaryDirectory {
 public:
  // `parent` empty: where the system keeps temporary files.
  explicit TemporaryDirectory(const std::string& parent = "",
                              const std::string& prefix = "lockstep-test-")
      : path_((parent.empty() ? std::filesystem::temp_directory_path().string() : parent) + "/" +
              prefix + "XXXXXX") {
    LOCKSTEP_CHECK(::mkdtemp(path_.data()) != nullptr, "a temporary directory can be made");
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  // The path of the directory, or of a file in it.
  std::string path(const std::string& name = "") const {
    return name.empty() ? path_ : path_ + "/" + name;
  }

 private:
  std::string path_;
};

}  // namespace lockstep
