// Zeros in whole pages. A page takes memory once it is written to.
//
// Errors: std::bad_alloc.
// Thread-safety: as the floats that it holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace lockstep {

class ZeroPages {
 public:
  explicit ZeroPages(uint64_t floats);
  ~ZeroPages();
  ZeroPages(ZeroPages&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  ZeroPages& operator=(ZeroPages&&) = delete;

  float* data() const { return data_; }  // null for no floats

 private:
  float* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace lockstep
