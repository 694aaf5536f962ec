// Any bytes as a file that is compressed as a whole: refused, or inflated to what an index
// promises, or to no more than its limit.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "comm/base/check.h"
#include "comm/base/limits.h"
#include "data/files/whole_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep;
  using namespace lockstep::data;
  if (size == 0) return 0;
  constexpr uint64_t kPatienceBytes = 1 << 20;
  const std::optional<uint64_t> promised =
      data[0] % 2 == 1 ? std::optional<uint64_t>(24) : std::nullopt;
  const std::span<const uint8_t> file(data + 1, size - 1);
  const WholeCodec codec = whole_codec(file);
  if (codec == WholeCodec::kNone) return 0;
  const uint64_t most =
      promised.value_or(file.size() * limits::kWholeInflateRatio + limits::kWholeInflateBytes);
  uint64_t done = 0;
  const Status status =
      inflate_whole(codec, file, promised, [&](std::span<const uint8_t> piece, uint64_t) {
        done += piece.size();
        LOCKSTEP_CHECK(!piece.empty() && done <= most, "no more than the limit");
        return done <= kPatienceBytes ? Status::ok() : Status(Code::kAborted, "long enough");
      });
  LOCKSTEP_CHECK(!status.is_ok() || !promised || done == *promised, "all that was promised");
  LOCKSTEP_CHECK(status.is_ok() || status.code() == Code::kBadData || done > kPatienceBytes,
                 "damage is bad data");
  return 0;
}
