// A directory that goes with its test.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace lockstep {

class TemporaryDirectory {
 public:
  // `parent` empty: where the system keeps temporary files.
  explicit TemporaryDirectory(const std::string& parent = "") {
    std::string name = (parent.empty() ? std::filesystem::temp_directory_path().string() : parent) +
                       "/lockstep-test-XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr) << name;
    path_ = name;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  // Of the directory, or of a file in it.
  std::string path(const std::string& name = "") const {
    return name.empty() ? path_ : path_ + "/" + name;
  }

 private:
  std::string path_;
};

}  // namespace lockstep
