// The files in a zip archive, where they lie in it. Every byte is believed to be hostile.
//
// Read are archives with and without the 64-bit extension, of one part, not encrypted; names are
// believed in the central directory.
//
// Format: PKWARE's APPNOTE.TXT 6.3.10, sections 4.3 and 4.5.3.
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "comm/base/status.h"

namespace lockstep::data {

struct ZipEntry {
  std::string name;
  uint64_t offset = 0;        // of its content, in the archive
  uint64_t stored_bytes = 0;  // which lie there
  uint64_t bytes = 0;         // when unpacked
  uint32_t crc = 0;           // of these: CRC-32
  bool is_deflated = false;   // else as it is
};

// In the order of the central directory, at most limits::kDataDirectoryEntries. kBadData, going on
// after the archive's name: truncated or damaged, entries that reach beyond it or lie over each
// other, encrypted, or packed in another way than deflated.
Result<std::vector<ZipEntry>> zip_entries(std::span<const uint8_t> archive);

}  // namespace lockstep::data
