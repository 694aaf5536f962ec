// Files that are kept as texts of hex digits (samples_header.py).
#pragma once

#include <map>
#include <string>

namespace lockstep::data {

// REQUIRES: it is there.
inline std::string sample_bytes(const std::map<std::string, std::string>& samples,
                                const std::string& name) {
  const std::string& hex = samples.at(name);
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

}  // namespace lockstep::data
