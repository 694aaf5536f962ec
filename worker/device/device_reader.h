// Reads memory of the device in pieces, through two pieces of pinned memory: one is filled while
// the caller looks at the other. A copy to other memory of the host goes at a fraction of the
// speed, and memory as large as the state must not be pinned.
//
// Thread-safety: the training thread only.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <span>

#include "comm/base/status.h"
#include "worker/cuda/device_module.h"

namespace lockstep {

class DeviceReader {
 public:
  static constexpr size_t kPieceBytes = size_t{8} << 20;

  struct Range {
    const void* from = nullptr;  // memory of the device
    size_t bytes = 0;
  };
  using Take = std::function<void(const std::byte* piece, size_t bytes)>;

  // `module` outlives the reader, and keeps its memory. `largest`: bytes that are read at a time,
  // to make smaller pieces where they suffice.
  DeviceReader(DeviceModule& module, size_t largest)
      : module_(module), piece_bytes_(std::clamp<size_t>(largest, 1, kPieceBytes)) {}

  Status reserve();

  // Gives `take` the bytes of all ranges, one range after the other, as all earlier work on
  // kCompute has left them. REQUIRES: reserve().
  Status read(std::span<const Range> ranges, const Take& take);

 private:
  DeviceModule& module_;
  const size_t piece_bytes_;
  std::array<std::byte*, 2> pieces_ = {};  // pinned
};

}  // namespace lockstep
