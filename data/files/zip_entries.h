// Finds where the files in a zip archive lie in the archive. The parser treats every byte as
// hostile.
//
// It reads archives with and without the 64-bit extension, of one part, not encrypted. It takes
// names from the central directory.
//
// Format: PKWARE's APPNOTE.TXT 6.3.10, sections 4.3 and 4.5.3.
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "comm/base/limits.h"
#include "comm/base/status.h"

namespace lockstep::data {

struct ZipEntry {
  std::string name;
  uint64_t offset = 0;        // of its content, in the archive
  uint64_t stored_bytes = 0;  // bytes in the archive
  uint64_t bytes = 0;         // when unpacked
  uint32_t crc = 0;           // CRC-32 of the unpacked bytes
  bool is_deflated = false;   // else stored as it is
};

// In the order of the central directory, at most `most_entries`. kBadData, with a
// message that goes on after the archive's name, if
// - the archive is truncated, damaged or encrypted
// - entries reach beyond it or overlap
// - an entry is packed in another way than deflated
Result<std::vector<ZipEntry>> zip_entries(std::span<const uint8_t> archive,
                                          size_t most_entries = limits::kDataDirectoryEntries);

}  // namespace lockstep::data
