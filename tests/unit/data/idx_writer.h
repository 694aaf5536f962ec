// Writes small IDX files, plain and gzipped, into a directory that goes with the test.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "comm/base/prng.h"
#include "comm/wire/job.pb.h"

namespace lockstep::data {

inline std::string idx_bytes(uint8_t type, const std::vector<uint32_t>& dims,
                             const std::string& content) {
  std::string bytes = {'\0', '\0', static_cast<char>(type), static_cast<char>(dims.size())};
  for (const uint32_t dim : dims)
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(dim >> shift & 255);
  return bytes + content;
}

inline std::string gzip_bytes(const std::string& plain, int level = 6) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, level, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, plain.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(plain.data()));
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(out.size() - stream.avail_out);
  deflateEnd(&stream);
  return out;
}

inline std::vector<uint8_t> bytes_of(const std::string& text) {
  return {text.begin(), text.end()};
}

inline void write_file(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

inline std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
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

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "lockstep-data-XXXXXX").string();
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    path_ = name;
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  std::string path(const std::string& name = "") const {
    return name.empty() ? path_ : path_ + "/" + name;
  }

 private:
  std::string path_;
};

inline wire::DatasetSpec spec_of(const std::string& path, const std::string& format = "auto") {
  wire::DatasetSpec spec;
  spec.set_path(path);
  spec.set_format(format);
  return spec;
}

}  // namespace lockstep::data
