// Any bytes into the frame decoder, cut as the input says: it must not crash, must not hold more
// than arrived, and must give the same as when all comes at once. Then the protobuf parser.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "comm/base/check.h"
#include "comm/wire/control.pb.h"
#include "comm/wire/frames.h"

namespace {

using lockstep::Status;
using lockstep::wire::Frame;
using lockstep::wire::FrameDecoder;

constexpr size_t kLimitBytes = 4096;

Status feed(FrameDecoder& decoder, std::string_view bytes, std::vector<Frame>* frames) {
  for (;;) {
    auto next = decoder.next(&bytes);
    if (!next.is_ok()) return next.status();
    if (!next->has_value()) return Status::ok();
    frames->push_back(std::move(**next));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const bool expect_preamble = (data[0] & 1) != 0;
  const size_t chunk = 1 + data[1];
  const std::string_view stream(reinterpret_cast<const char*>(data) + 2, size - 2);

  FrameDecoder whole(kLimitBytes, expect_preamble);
  FrameDecoder cut(kLimitBytes, expect_preamble);
  std::vector<Frame> a;
  std::vector<Frame> b;
  const Status status_a = feed(whole, stream, &a);
  Status status_b;
  for (size_t at = 0; at < stream.size() && status_b.is_ok(); at += chunk)
    status_b = feed(cut, stream.substr(at, chunk), &b);
  LOCKSTEP_CHECK(status_a == status_b, "chunking changed the verdict");
  LOCKSTEP_CHECK(a == b, "chunking changed the frames");

  for (const Frame& frame : a) {
    LOCKSTEP_CHECK(frame.payload.size() <= kLimitBytes, "a frame above the limit");
    lockstep::wire::Envelope envelope;
    (void)parse_frame(frame, lockstep::wire::FrameKind::kEnvelope, &envelope);
  }
  return 0;
}
