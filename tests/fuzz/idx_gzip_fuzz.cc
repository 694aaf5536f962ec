// Any bytes as a gzipped IDX file: refused, or inflated to exactly what its header promises. Never
// more than the promise reaches the sink, however well the input was compressed.
#include <cstddef>
#include <cstdint>
#include <span>

#include "comm/base/check.h"
#include "data/formats/arrays/idx_inflate.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep;
  using namespace lockstep::data;
  constexpr uint64_t kPatienceBytes = 1 << 20;  // a promise may be honest and long
  uint64_t promised = 0;
  uint64_t done = 0;
  const auto header =
      inflate_idx(std::span(data, size), [&](std::span<const uint8_t> piece, uint64_t) {
        if (done == 0) {
          const auto head = parse_idx_header(piece);
          LOCKSTEP_CHECK(head.is_ok(), "the first piece holds the whole header");
          promised = head->file_bytes();
        }
        done += piece.size();
        LOCKSTEP_CHECK(done <= promised, "no more than promised");
        return done <= kPatienceBytes ? Status::ok() : Status(Code::kAborted, "long enough");
      });
  if (header.is_ok()) {
    LOCKSTEP_CHECK(done == promised && header->file_bytes() == promised, "all that was promised");
  } else {
    LOCKSTEP_CHECK(header.status().code() == Code::kBadData || done > kPatienceBytes,
                   "damage is bad data");
  }
  return 0;
}
