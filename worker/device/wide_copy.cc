#include "worker/device/wide_copy.h"

#include <algorithm>
#include <cstring>
#include <system_error>
#include <thread>
#include <vector>

namespace lockstep {

uint32_t wide_copy(std::byte* to, const std::byte* from, size_t bytes, uint32_t threads) {
  if (bytes == 0) return 1;
  const size_t parts = std::clamp<size_t>(bytes / kWideCopyPart, 1, std::max(1U, threads));
  const size_t part = bytes / parts;
  std::vector<std::jthread> others;
  size_t begin = 0;
  try {
    for (; others.size() + 1 < parts; begin += part)
      others.emplace_back([=] { std::memcpy(to + begin, from + begin, part); });
  } catch (const std::system_error&) {  // no thread is left: this one copies the rest
  }
  std::memcpy(to + begin, from + begin, bytes - begin);
  return static_cast<uint32_t>(others.size()) + 1;
}

uint32_t wide_copy_threads() {
  constexpr uint32_t kMost = 4;         // near the bandwidth of one GPU's way
  constexpr uint32_t kWorkersHere = 8;  // of a large node
  return std::clamp(std::thread::hardware_concurrency() / kWorkersHere, 1U, kMost);
}

}  // namespace lockstep
