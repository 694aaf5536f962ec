// The small exported programs of tests/golden/exported.
#pragma once

#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "worker/model/exported_program/read_program.h"

namespace lockstep::exported::testing {

inline std::string golden_path(const std::string& name) {
  return std::string(LOCKSTEP_GOLDEN_DIR) + "/exported/" + name + ".pt2";
}

inline std::string golden_bytes(const std::string& name) {
  std::ifstream in(golden_path(name), std::ios::binary);
  std::ostringstream content;
  content << in.rdbuf();
  return content.str();
}

// Parses a copy, so that a read beyond the file's end is a read beyond an allocation.
inline Result<Program> parse(const std::string& bytes) {
  const auto copy = std::make_shared<std::vector<uint8_t>>(bytes.begin(), bytes.end());
  return parse_program(std::span<const uint8_t>(*copy), copy);
}

}  // namespace lockstep::exported::testing
