// Any bytes as a zip archive: refused, or files that lie within it, which inflate to what they
// promise or are refused.
#include <cstddef>
#include <cstdint>
#include <span>

#include "comm/base/check.h"
#include "data/files/gzip.h"
#include "data/files/zip_entries.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep;
  using namespace lockstep::data;
  constexpr uint64_t kPatienceBytes = 1 << 20;  // a promise may be honest and long
  const std::span<const uint8_t> archive(data, size);
  const auto entries = zip_entries(archive);
  if (!entries.is_ok()) {
    LOCKSTEP_CHECK(entries.status().code() == Code::kBadData, "damage is bad data");
    return 0;
  }
  for (const ZipEntry& entry : *entries) {
    LOCKSTEP_CHECK(entry.offset <= size && entry.stored_bytes <= size - entry.offset,
                   "a file lies within its archive");
    if (!entry.is_deflated) continue;
    uint64_t done = 0;
    const auto sink = [&](std::span<const uint8_t> piece, uint64_t bytes) {
      done += piece.size();
      LOCKSTEP_CHECK(done <= bytes && bytes == entry.bytes, "no more than promised");
      return done <= kPatienceBytes ? Status::ok() : Status(Code::kAborted, "long enough");
    };
    const Status inflated = inflate_bare(archive.subspan(entry.offset, entry.stored_bytes),
                                         entry.bytes, entry.crc, sink);
    LOCKSTEP_CHECK(inflated.is_ok() || inflated.code() == Code::kBadData || done > kPatienceBytes,
                   "damage is bad data");
    LOCKSTEP_CHECK(!inflated.is_ok() || done == entry.bytes, "all that was promised");
  }
  return 0;
}
