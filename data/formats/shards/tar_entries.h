// Finds where the files in a tar archive lie in the archive. The parser treats every byte as
// hostile.
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
  std::string name;  // relative, contains no ..
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

// Calls each(entry) for every plain file, in their order, until a call is not ok. Skips
// directories. kBadData, with a message that goes on after the archive's name, if the archive
// - is truncated, damaged or compressed
// - has links, devices or sparse files
// - has absolute names, or names that lead upwards
Status walk_tar(std::span<const uint8_t> archive,
                const std::function<Status(const TarEntry&)>& each);

}  // namespace lockstep::data
