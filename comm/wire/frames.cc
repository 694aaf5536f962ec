#include "comm/wire/frames.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/message_lite.h>

#include <algorithm>
#include <limits>

#include "comm/base/check.h"

namespace lockstep::wire {
namespace {

bool is_known(uint8_t kind) {
  switch (static_cast<FrameKind>(kind)) {
    case FrameKind::kAuthChallenge:
    case FrameKind::kAuthResponse:
    case FrameKind::kAuthAccept:
    case FrameKind::kAuthRefuse:
    case FrameKind::kEnvelope:
      return true;
  }
  return false;
}

// Moves up to `wanted` bytes from the front of *input to `out`.
size_t take(std::string_view* input, char* out, size_t wanted) {
  const size_t bytes = std::min(wanted, input->size());
  std::copy_n(input->data(), bytes, out);
  input->remove_prefix(bytes);
  return bytes;
}

}  // namespace

const char* frame_kind_name(FrameKind kind) {
  switch (kind) {
    case FrameKind::kAuthChallenge:
      return "AuthChallenge";
    case FrameKind::kAuthResponse:
      return "AuthResponse";
    case FrameKind::kAuthAccept:
      return "AuthAccept";
    case FrameKind::kAuthRefuse:
      return "AuthRefuse";
    case FrameKind::kEnvelope:
      return "Envelope";
  }
  return "unknown";
}

std::array<char, kFrameHeaderBytes> encode_frame_header(FrameKind kind, size_t payload_bytes) {
  LOCKSTEP_CHECK(payload_bytes <= std::numeric_limits<uint32_t>::max(), "frame above 4 GiB");
  const auto length = static_cast<uint32_t>(payload_bytes);
  return {static_cast<char>(length), static_cast<char>(length >> 8),
          static_cast<char>(length >> 16), static_cast<char>(length >> 24),
          static_cast<char>(kind)};
}

std::string encode_frame(const Frame& frame) {
  const auto header = encode_frame_header(frame.kind, frame.payload.size());
  std::string bytes;
  bytes.reserve(header.size() + frame.payload.size());
  bytes.append(header.data(), header.size());
  bytes += frame.payload;
  return bytes;
}

SharedFrame share_frame(const Frame& frame) {
  return std::make_shared<const std::string>(encode_frame(frame));
}

Frame unshare_frame(const SharedFrame& frame) {
  const auto kind = static_cast<FrameKind>((*frame)[kFrameHeaderBytes - 1]);
  return {kind, frame->substr(kFrameHeaderBytes)};
}

Frame make_frame(FrameKind kind, const google::protobuf::MessageLite& message) {
  Frame frame;
  frame.kind = kind;
  {
    google::protobuf::io::StringOutputStream stream(&frame.payload);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    LOCKSTEP_CHECK(message.SerializeToCodedStream(&coded), "message above 2 GiB");
  }
  return frame;
}

Status parse_frame(const Frame& frame, FrameKind expected, google::protobuf::MessageLite* message) {
  if (frame.kind != expected) {
    return Status(Code::kRefused, std::string("a frame of kind ") + frame_kind_name(frame.kind) +
                                      " came where " + frame_kind_name(expected) + " was expected");
  }
  if (!message->ParseFromString(frame.payload)) {
    return Status(Code::kRefused, "a frame of " + std::to_string(frame.payload.size()) +
                                      " bytes does not parse as " + frame_kind_name(expected));
  }
  return Status::ok();
}

Status FrameDecoder::fail(std::string message) {
  error_ = Status(Code::kRefused, std::move(message));
  return error_;
}

Status FrameDecoder::take_preamble(std::string_view* input) {
  while (preamble_used_ < kPreamble.size() && !input->empty()) {
    const char byte = input->front();
    const bool is_version = preamble_used_ + 1 == kPreamble.size();
    if (byte != kPreamble[preamble_used_]) {
      if (!is_version) return fail("the stream does not begin like a Lockstep peer's");
      return fail("the peer speaks wire version " + std::to_string(static_cast<uint8_t>(byte)) +
                  ", this program version " + std::to_string(kWireVersion));
    }
    input->remove_prefix(1);
    ++preamble_used_;
  }
  preamble_done_ = preamble_used_ == kPreamble.size();
  return Status::ok();
}

Status FrameDecoder::take_header(std::string_view* input) {
  header_used_ += take(input, header_.data() + header_used_, header_.size() - header_used_);
  if (header_used_ < header_.size()) return Status::ok();
  uint32_t length = 0;
  for (int i = 3; i >= 0; --i) length = length << 8 | static_cast<uint8_t>(header_[size_t(i)]);
  const auto kind = static_cast<uint8_t>(header_[4]);
  if (length > limit_bytes_) {
    return fail("a frame of " + std::to_string(length) + " bytes was announced, the limit is " +
                std::to_string(limit_bytes_));
  }
  if (!is_known(kind)) return fail("a frame of unknown kind " + std::to_string(kind));
  payload_bytes_ = length;
  frame_.kind = static_cast<FrameKind>(kind);
  return Status::ok();
}

Result<std::optional<Frame>> FrameDecoder::next(std::string_view* input) {
  LOCKSTEP_RETURN_IF_ERROR(error_);
  if (!preamble_done_) LOCKSTEP_RETURN_IF_ERROR(take_preamble(input));
  if (!preamble_done_) return std::optional<Frame>();
  if (header_used_ < header_.size()) LOCKSTEP_RETURN_IF_ERROR(take_header(input));
  if (header_used_ < header_.size()) return std::optional<Frame>();

  const size_t bytes = std::min(payload_bytes_ - frame_.payload.size(), input->size());
  frame_.payload.append(input->data(), bytes);
  input->remove_prefix(bytes);
  if (frame_.payload.size() < payload_bytes_) return std::optional<Frame>();
  header_used_ = 0;
  return std::optional<Frame>(std::exchange(frame_, Frame()));
}

}  // namespace lockstep::wire
