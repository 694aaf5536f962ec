#include "worker/device/device_reader.h"

#include "worker/device/device_marks.h"
#include "worker/device/device_memory.h"

namespace lockstep {
namespace {

// Goes through ranges, and cuts them where a piece is full.
class Cursor {
 public:
  explicit Cursor(std::span<const DeviceReader::Range> ranges) : ranges_(ranges) {}

  // The next bytes that lie together, at most `most`; none at the end.
  DeviceReader::Range next(size_t most) {
    while (range_ < ranges_.size() && done_ == ranges_[range_].bytes) {
      ++range_;
      done_ = 0;
    }
    if (range_ == ranges_.size()) return {};
    const DeviceReader::Range& of = ranges_[range_];
    const DeviceReader::Range part{static_cast<const std::byte*>(of.from) + done_,
                                   std::min(most, of.bytes - done_)};
    done_ += part.bytes;
    return part;
  }

 private:
  const std::span<const DeviceReader::Range> ranges_;
  size_t range_ = 0;
  size_t done_ = 0;  // bytes of this range
};

}  // namespace

Status DeviceReader::reserve() {
  for (std::byte*& piece : pieces_)
    LOCKSTEP_RETURN_IF_ERROR(allocate_host(module_, &piece, piece_bytes_));
  return Status::ok();
}

Status DeviceReader::read(std::span<const Range> ranges, const Take& take) {
  constexpr DeviceLane kReads = DeviceLane::kCompute;
  Cursor cursor(ranges);
  const auto fill = [&](uint32_t piece) -> Result<size_t> {
    size_t filled = 0;
    while (filled < piece_bytes_) {
      const Range part = cursor.next(piece_bytes_ - filled);
      if (part.bytes == 0) break;
      LOCKSTEP_RETURN_IF_ERROR(
          module_.copy(kReads, pieces_[piece] + filled, part.from, part.bytes));
      filled += part.bytes;
    }
    LOCKSTEP_RETURN_IF_ERROR(module_.mark(kPieceThere + piece, kReads));
    return filled;
  };
  LOCKSTEP_ASSIGN_OR_RETURN(size_t filled, fill(0));
  for (uint32_t piece = 0; filled > 0; piece = 1 - piece) {
    LOCKSTEP_ASSIGN_OR_RETURN(const size_t next, fill(1 - piece));
    LOCKSTEP_RETURN_IF_ERROR(module_.wait(kPieceThere + piece));
    take(pieces_[piece], filled);
    filled = next;
  }
  return Status::ok();
}

}  // namespace lockstep
