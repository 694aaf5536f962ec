#include "data/files/whole_file.h"

#include <string>
#include <vector>

#include "comm/base/byte_units.h"
#include "comm/base/check.h"
#include "comm/base/limits.h"
#include "data/base/file_errors.h"
#include "data/files/zstd.h"

namespace lockstep::data {
namespace {

constexpr size_t kReadBytes = 256 * kKib;  // stays in the second-level cache

Status check_all_there(uint64_t done, std::optional<uint64_t> promised) {
  if (!promised || done == *promised) return Status::ok();
  return bad("inflates to " + std::string(done > *promised ? "more than" : "less than") + " the " +
             std::to_string(*promised) + " bytes in the index; copy it again");
}

template <typename Reader>
Status pass_plain(Reader& reader, uint64_t most, std::optional<uint64_t> promised,
                  const ByteSink& sink) {
  std::vector<uint8_t> piece(kReadBytes);
  uint64_t done = 0;
  for (;;) {
    LOCKSTEP_ASSIGN_OR_RETURN(const size_t filled, reader.read(piece));
    if (filled == 0) return check_all_there(done, promised);
    done += filled;
    if (done > most) return promised ? check_all_there(done, promised) : inflates_too_much();
    LOCKSTEP_RETURN_IF_ERROR(sink(std::span(piece).first(filled), promised.value_or(0)));
  }
}

}  // namespace

WholeCodec whole_codec(std::span<const uint8_t> begin) {
  if (is_gzip(begin)) return WholeCodec::kGzip;
  return is_zstd(begin) ? WholeCodec::kZstd : WholeCodec::kNone;
}

Status inflate_whole(WholeCodec codec, std::span<const uint8_t> file,
                     std::optional<uint64_t> promised, const ByteSink& sink) {
  LOCKSTEP_CHECK(codec != WholeCodec::kNone, "it is compressed");
  const uint64_t most = most_inflated(file.size(), limits::kWholeInflateBytes);
  if (promised && *promised > most) return inflates_too_much();
  if (codec == WholeCodec::kGzip) {
    GzipReader reader(file);
    return pass_plain(reader, promised.value_or(most), promised, sink);
  }
  ZstdReader reader(file);
  return pass_plain(reader, promised.value_or(most), promised, sink);
}

}  // namespace lockstep::data
