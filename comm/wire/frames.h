// Frames: the form of control messages on a byte stream. WIRE.md has the grammar.
//
// Thread-safety: a FrameDecoder belongs to one thread. The free functions have no state.
//
// Invariants:
//  1. The frames that come out do not depend on how the stream was cut into chunks.
//  2. The decoder holds memory for the bytes of a frame that have arrived (at most doubled by
//     growth), never for what a header merely promises.
//  3. The decoder refuses a header that announces more than the limit, or an unknown kind, before
//     it reads any byte of the payload. The limit at the time of the complete header counts.
//  4. After an error the decoder is broken: every later call gives the same error.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "comm/base/status.h"

namespace google::protobuf {
class MessageLite;
}

namespace lockstep::wire {

inline constexpr uint8_t kWireVersion = 5;

// The first bytes of each side, sent once.
inline constexpr std::string_view kPreamble{"LOCKSTP\x05", 8};

enum class FrameKind : uint8_t {
  kAuthChallenge = 1,
  kAuthResponse = 2,
  kAuthAccept = 3,
  kAuthRefuse = 4,
  kEnvelope = 16,
};

const char* frame_kind_name(FrameKind kind);

struct Frame {
  FrameKind kind = FrameKind::kEnvelope;
  std::string payload;  // a serialized message of the kind
  bool operator==(const Frame&) const = default;
};

inline constexpr size_t kFrameHeaderBytes = 5;

// Header of a frame: u32 little-endian payload length, then the kind.
// REQUIRES: payload_bytes fits 32 bits.
std::array<char, kFrameHeaderBytes> encode_frame_header(FrameKind kind, size_t payload_bytes);

// Header and payload, ready for the stream.
std::string encode_frame(const Frame& frame);

// An encoded frame for any number of connections: it lies in memory once.
using SharedFrame = std::shared_ptr<const std::string>;
SharedFrame share_frame(const Frame& frame);
// The inverse of share_frame().
Frame unshare_frame(const SharedFrame& frame);

// A frame that holds `message`, serialized deterministically.
Frame make_frame(FrameKind kind, const google::protobuf::MessageLite& message);

// Fills `message`. kRefused if the frame has another kind or does not parse.
Status parse_frame(const Frame& frame, FrameKind expected, google::protobuf::MessageLite* message);

class FrameDecoder {
 public:
  // Expects the preamble first unless told otherwise.
  explicit FrameDecoder(size_t limit_bytes, bool expect_preamble = true)
      : limit_bytes_(limit_bytes), preamble_done_(!expect_preamble) {}

  // Takes bytes from the front of *input. Returns a frame as soon as one is complete (call again
  // for the next one), nothing when it has used up all input, or kRefused with the reason in one
  // sentence.
  Result<std::optional<Frame>> next(std::string_view* input);

  // Applies to frames whose header is not complete yet.
  void set_limit(size_t limit_bytes) { limit_bytes_ = limit_bytes; }
  size_t limit() const { return limit_bytes_; }

  // True between two frames: a stream may end here.
  bool at_boundary() const { return error_.is_ok() && header_used_ == 0; }

 private:
  Status take_preamble(std::string_view* input);
  Status take_header(std::string_view* input);
  Status fail(std::string message);

  size_t limit_bytes_;
  bool preamble_done_;
  size_t preamble_used_ = 0;
  std::array<char, kFrameHeaderBytes> header_{};
  size_t header_used_ = 0;
  size_t payload_bytes_ = 0;  // announced; valid when the header is complete
  Frame frame_;
  Status error_;
};

}  // namespace lockstep::wire
