// Small IDX files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/base/prng.h"
#include "comm/run/job/job.pb.h"
#include "tests/support/files.h"
#include "tests/support/gzip_writer.h"
#include "tests/support/temporary_directory.h"

namespace lockstep::data {

inline std::string idx_bytes(uint8_t type, const std::vector<uint32_t>& dims,
                             const std::string& content) {
  std::string bytes = {'\0', '\0', static_cast<char>(type), static_cast<char>(dims.size())};
  for (const uint32_t dim : dims)
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(dim >> shift & 255);
  return bytes + content;
}

inline std::vector<uint8_t> bytes_of(const std::string& text) {
  return {text.begin(), text.end()};
}

// Pseudo-random pixels and labels 0..classes-1 in turn.
inline std::string some_images(uint32_t n, uint32_t height, uint32_t width, uint64_t seed = 1) {
  std::string content(size_t{n} * height * width, '\0');
  Prng prng(seed);
  for (char& byte : content) byte = static_cast<char>(prng.below(256));
  return idx_bytes(0x08, {n, height, width}, content);
}

inline std::string some_labels(uint32_t n, uint32_t classes = 10) {
  std::string content(n, '\0');
  for (uint32_t i = 0; i < n; ++i) content[i] = static_cast<char>(i % classes);
  return idx_bytes(0x08, {n}, content);
}

inline wire::DatasetSpec spec_of(const std::string& path, const std::string& format = "auto") {
  wire::DatasetSpec spec;
  spec.set_path(path);
  spec.set_format(format);
  return spec;
}

}  // namespace lockstep::data
