#include "comm/wire/frames.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

#include "comm/base/limits.h"
#include "comm/wire/control.pb.h"

namespace lockstep::wire {
namespace {

constexpr FrameKind kKinds[] = {FrameKind::kAuthChallenge, FrameKind::kAuthResponse,
                                FrameKind::kAuthAccept, FrameKind::kAuthRefuse,
                                FrameKind::kEnvelope};

// Everything that one chunk gives; stops at the first error.
Status feed(FrameDecoder& decoder, std::string_view chunk, std::vector<Frame>* frames) {
  for (;;) {
    auto next = decoder.next(&chunk);
    if (!next.is_ok()) return next.status();
    if (!next->has_value()) {
      EXPECT_TRUE(chunk.empty());
      return Status::ok();
    }
    frames->push_back(**next);
  }
}

std::string header(uint32_t length, uint8_t kind) {
  std::string bytes;
  for (int i = 0; i < 4; ++i) bytes += static_cast<char>(length >> (8 * i));
  return bytes + static_cast<char>(kind);
}

TEST(Frames, LieOnTheStreamAsWireMdSays) {
  EXPECT_EQ(encode_frame({FrameKind::kEnvelope, "abc"}), std::string("\x03\0\0\0\x10"
                                                                     "abc",
                                                                     8));
  EXPECT_EQ(kPreamble, std::string_view("LOCKSTP\x05"));
}

RC_GTEST_PROP(Frames, AnyChunkingGivesTheSameFrames, ()) {
  std::vector<Frame> sent;
  std::string stream(kPreamble);
  for (const std::string& payload : *rc::gen::arbitrary<std::vector<std::string>>()) {
    sent.push_back(
        {*rc::gen::elementOf(std::vector<FrameKind>(std::begin(kKinds), std::end(kKinds))),
         payload});
    stream += encode_frame(sent.back());
  }
  FrameDecoder decoder(1 << 20);
  std::vector<Frame> received;
  size_t at = 0;
  while (at < stream.size()) {
    const auto bytes = *rc::gen::inRange<size_t>(0, stream.size() - at + 1);
    RC_ASSERT(feed(decoder, std::string_view(stream).substr(at, bytes), &received).is_ok());
    at += bytes == 0 ? 0 : bytes;
    if (bytes == 0) {  // an empty chunk changes nothing; go on by one byte
      RC_ASSERT(feed(decoder, std::string_view(stream).substr(at, 1), &received).is_ok());
      ++at;
    }
  }
  RC_ASSERT(received == sent);
  RC_ASSERT(decoder.at_boundary());
}

RC_GTEST_PROP(Frames, AnErrorDoesNotDependOnChunking, (const std::string& garbage)) {
  const std::string stream = std::string(kPreamble) + garbage;
  FrameDecoder whole(64);
  FrameDecoder bytewise(64);
  std::vector<Frame> a;
  std::vector<Frame> b;
  const Status status_a = feed(whole, stream, &a);
  Status status_b;
  for (size_t i = 0; i < stream.size() && status_b.is_ok(); ++i)
    status_b = feed(bytewise, std::string_view(stream).substr(i, 1), &b);
  RC_ASSERT(status_a == status_b);
  RC_ASSERT(a == b);
}

TEST(Frames, HugeLengthIsRefusedFromItsHeaderAlone) {
  FrameDecoder decoder(limits::kFrameBytesBeforeAuth, false);
  std::vector<Frame> frames;
  const Status status = feed(decoder, header(0xffffffff, 16), &frames);
  EXPECT_EQ(status.code(), Code::kRefused);
  EXPECT_EQ(status.message(), "a frame of 4294967295 bytes was announced, the limit is 4096");
  EXPECT_EQ(feed(decoder, header(0, 16), &frames), status) << "a broken decoder stays broken";
  EXPECT_TRUE(frames.empty());
}

TEST(Frames, LimitItselfPassesAndOneMoreDoesNot) {
  std::vector<Frame> frames;
  FrameDecoder decoder(10, false);
  EXPECT_TRUE(
      feed(decoder, encode_frame({FrameKind::kEnvelope, std::string(10, 'x')}), &frames).is_ok());
  EXPECT_EQ(frames.size(), 1u);
  EXPECT_FALSE(feed(decoder, header(11, 16), &frames).is_ok());
}

TEST(Frames, ANewLimitHoldsFromTheNextHeaderOn) {
  const std::string stream = encode_frame({FrameKind::kAuthAccept, "a"}) +
                             encode_frame({FrameKind::kEnvelope, std::string(100, 'x')});
  FrameDecoder decoder(10, false);
  std::string_view input = stream;
  ASSERT_TRUE(decoder.next(&input).value().has_value());
  decoder.set_limit(100);
  EXPECT_EQ(decoder.next(&input).value()->payload.size(), 100u);
}

TEST(Frames, UnknownKindIsRefused) {
  FrameDecoder decoder(10, false);
  std::vector<Frame> frames;
  EXPECT_EQ(feed(decoder, header(1, 99), &frames).message(), "a frame of unknown kind 99");
}

TEST(Frames, AStrangersProtocolIsNamedAsSuch) {
  FrameDecoder decoder(10);
  std::vector<Frame> frames;
  EXPECT_EQ(feed(decoder, "GET / HTTP/1.1\r\n", &frames).message(),
            "the stream does not begin like a Lockstep peer's");
}

TEST(Frames, AnotherVersionIsShownBesideOurs) {
  FrameDecoder decoder(10);
  std::vector<Frame> frames;
  EXPECT_EQ(feed(decoder, std::string_view("LOCKSTP\x07", 8), &frames).message(),
            "the peer speaks wire version 7, this program version 5");
}

TEST(Frames, AStreamCutInsideAFrameIsNotAtABoundary) {
  FrameDecoder decoder(10, false);
  std::vector<Frame> frames;
  EXPECT_TRUE(decoder.at_boundary());
  ASSERT_TRUE(feed(decoder, header(3, 16) + "ab", &frames).is_ok());
  EXPECT_FALSE(decoder.at_boundary());
  ASSERT_TRUE(feed(decoder, "c", &frames).is_ok());
  EXPECT_TRUE(decoder.at_boundary());
}

TEST(Frames, AMessageSurvivesTheWay) {
  Envelope sent;
  sent.set_term(3);
  sent.mutable_heartbeat()->set_step(41);
  const Frame frame = make_frame(FrameKind::kEnvelope, sent);
  Envelope received;
  ASSERT_TRUE(parse_frame(frame, FrameKind::kEnvelope, &received).is_ok());
  EXPECT_EQ(received.term(), 3u);
  EXPECT_EQ(received.heartbeat().step(), 41u);
}

TEST(Frames, AWrongKindAndARottenPayloadAreRefused) {
  Envelope received;
  EXPECT_EQ(parse_frame({FrameKind::kAuthAccept, ""}, FrameKind::kEnvelope, &received).message(),
            "a frame of kind AuthAccept came where Envelope was expected");
  EXPECT_EQ(parse_frame({FrameKind::kEnvelope, "\xff\xff"}, FrameKind::kEnvelope, &received).code(),
            Code::kRefused);
}

}  // namespace
}  // namespace lockstep::wire
