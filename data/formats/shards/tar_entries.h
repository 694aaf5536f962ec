// The files in a tar archive, where they lie in it. Every byte is believed to be hostile.
//
// Formats: POSIX ustar and pax (IEEE 1003.1, pax, "ustar Interchange Format"), and GNU's long names
// and large numbers.
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "comm/base/status.h"

namespace lockstep::data {

struct TarEntry {
  std::string name;  // relative, without .. in it
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

// each(entry) for every plain file, in their order, until one is not ok. Directories are left out.
// kBadData, going on after the archive's name: truncated or damaged, compressed, or with links,
// devices, sparse files, absolute names or such that lead upwards.
Status walk_tar(std::span<const uint8_t> archive,
                const std::function<Status(const TarEntry&)>& each);

}  // namespace lockstep::data
