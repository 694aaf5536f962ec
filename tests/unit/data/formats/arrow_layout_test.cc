// Files that lie, made of good ones: numbers in them are found by what they say and replaced.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "comm/base/limits.h"
#include "data/arrow/codec.h"
#include "data/arrow/file_layout.h"
#include "data/arrow/inflate.h"
#include "data/arrow/writer.h"
#include "data/formats/arrow/arrow_images.h"
#include "tests/support/fails_with.h"
#include "tests/unit/data/samples/arrow_samples.h"
#include "tests/unit/data/support/image_writer.h"
#include "tests/unit/data/support/shard_checks.h"

namespace lockstep::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string text_of(uint64_t value, size_t bytes) {
  std::string text(bytes, '\0');
  std::memcpy(text.data(), &value, bytes);
  return text;
}

// A file with one batch of columns image (binary, 2 rows) and label, with these offsets.
struct Sketch {
  std::vector<uint32_t> offsets = {0, 3, 5};
  uint64_t rows = 2;
  uint64_t data_bytes = 5;
  uint64_t label_bytes = 16;
  std::function<void(ArrowBatch&)> bend = [](ArrowBatch&) {};
  int times = 1;       // that the footer names the batch
  uint64_t shift = 0;  // by which it is off

  std::string file() const {
    ArrowSchema schema;
    ArrowField image;
    image.name = "image";
    image.kind = ArrowKind::kBinary;
    schema.fields = {image, arrow_int("label", 8, true)};
    ArrowBatch batch;
    batch.rows = rows;
    batch.nodes = {{rows, 0}, {rows, 0}};
    batch.buffers = {{}, {0, 4 * offsets.size()}, {0, data_bytes}, {}, {0, label_bytes}};
    const uint64_t body_bytes = lay_out(batch);
    bend(batch);
    std::string out = arrow_file_head();
    out += schema_message(schema, out.size());
    const std::string message = batch_message(batch, body_bytes, out.size());
    const ArrowBlock block{out.size() + shift, message.size(), body_bytes};
    out += message;
    const size_t body = out.size();
    out.resize(body + body_bytes, '\0');
    std::memcpy(out.data() + body, offsets.data(), 4 * offsets.size());
    return out + arrow_file_end(schema, std::vector<ArrowBlock>(static_cast<size_t>(times), block));
  }
};

std::string said(const std::string& file) {
  return said_of([](std::span<const uint8_t> bytes) { return samples_of_arrow(bytes); }, file);
}

TEST(ArrowLayout, WhatItWritesItReads) {
  EXPECT_THAT(said(Sketch().file()), AllOf(Names("row 0"), Says("an image")));
  const std::string file = Sketch().file();
  const auto layout = parse_arrow(span_of(file));
  ASSERT_TRUE(layout.is_ok()) << layout.status().message();
  EXPECT_EQ(layout->batches[0].buffers[1].offset % kArrowAlignBytes, 0U);
  EXPECT_EQ(layout->batches[0].buffers[2].offset % kArrowAlignBytes, 0U);
}

TEST(ArrowLayout, OffsetsOutOfRangeOrBackwardsAreRefused) {
  EXPECT_THAT(said(Sketch{.offsets = {0, 6, 6}}.file()), Says("beyond"));
  EXPECT_THAT(said(Sketch{.offsets = {3, 0, 5}}.file()), HasSubstr("go backwards"));
  EXPECT_THAT(said(Sketch{.offsets = {0xFFFFFFFF, 3, 5}}.file()), HasSubstr("go backwards"));
  EXPECT_THAT(said(Sketch{.offsets = {0, 0x80000000, 5}}.file()), HasSubstr("reach beyond"));
  EXPECT_THAT(said(Sketch{.offsets = {0, 3}}.file()), Says("offsets"));
}

TEST(ArrowLayout, LyingLengthsAndSizesAreRefused) {
  EXPECT_THAT(said(Sketch{.label_bytes = 15}.file()), AllOf(Names("label"), Says("shorter")));
  EXPECT_THAT(said(Sketch{.rows = uint64_t{1} << 60}.file()),
              AllOf(Names("label"), Says("shorter")));
  const auto bent = [](auto bend) { return said(Sketch{.bend = bend}.file()); };
  EXPECT_THAT(bent([](ArrowBatch& b) { b.nodes[1].rows = 3; }),
              AllOf(Names("column label"), Says("3 rows", "batch of 2")));
  EXPECT_THAT(bent([](ArrowBatch& b) { b.nodes[0].nulls = 3; }), Says("inconsistent"));
  EXPECT_THAT(bent([](ArrowBatch& b) { b.buffers[2].bytes = uint64_t{1} << 62; }),
              Says("buffer", "beyond"));
  EXPECT_THAT(bent([](ArrowBatch& b) { b.buffers[2].offset = UINT64_MAX - 3; }),
              Says("inconsistent"));
  EXPECT_THAT(bent([](ArrowBatch& b) { b.buffers[2].offset = 1; }), Says("buffers", "overlap"));
  EXPECT_THAT(bent([](ArrowBatch& b) { b.buffers.pop_back(); }), Says("columns", "schema"));
  EXPECT_THAT(bent([](ArrowBatch& b) { b.nodes.pop_back(); }), Says("columns", "schema"));
}

TEST(ArrowLayout, ABatchCountsOnce) {
  EXPECT_THAT(said(Sketch{.times = 2}.file()), Says("batches overlap"));
  EXPECT_THAT(said(Sketch{.shift = 8}.file()), Says("no message begins at byte"));
  EXPECT_THAT(said(Sketch{.shift = uint64_t{1} << 40}.file()), Says("beyond the file"));
}

// A file says nothing of the order where it is little-endian. Its footer gets a field that does,
// which is found by trying: the table's list of its fields gets a place for it.
TEST(ArrowLayout, BigEndianIsRefused) {
  const std::string good = arrow_sample("encoded");
  ASSERT_EQ(said(good), "");
  size_t refused = 0;
  for (size_t i = good.size() / 2; i + 1 < good.size(); ++i) {
    for (const char place : {'\x04', '\x06', '\x08', '\x0a', '\x0c'}) {
      if (good[i] != 0) continue;
      std::string other = good;
      other[i] = place;
      refused += said(other).find("big-endian") == std::string::npos ? 0U : 1U;
    }
  }
  EXPECT_GT(refused, 0U);
}

TEST(ArrowLayout, TruncatedFilesAreRefused) {
  for (const char* sample : {"encoded", "encoded_stream"}) {
    const std::string good = arrow_sample(sample);
    for (size_t n = 0; n < good.size(); ++n) EXPECT_NE(said(good.substr(0, n)), "") << n;
  }
  EXPECT_THAT(said(""), Says("truncated", "Arrow"));
  EXPECT_THAT(said(arrow_sample("encoded_stream") + "x"), Says("bytes follow its end"));
  std::string footer = arrow_sample("encoded");
  footer.replace(footer.size() - 10, 4, text_of(1u << 30, 4));
  EXPECT_THAT(said(footer), Says("footer"));
  std::string message = arrow_sample("encoded_stream");
  message.replace(4, 4, text_of(0xFFFFFFF0, 4));
  EXPECT_THAT(said(message), Says("4294967280 bytes", "limit"));
}

TEST(ArrowLayout, NoDamageIsTakenForMore) {
  const ParseShard parse = [](std::span<const uint8_t> bytes) { return samples_of_arrow(bytes); };
  expect_no_damage_is_taken_for_more(parse, arrow_sample("encoded"));
  expect_no_damage_is_taken_for_more(parse, arrow_sample("hugging_face"));
}

std::string inflated(ArrowCodec codec, const std::string& buffer) {
  std::string out;
  const Status status = inflate_buffer(codec, span_of(buffer), [&](std::span<const uint8_t> piece) {
    out.append(piece.begin(), piece.end());
    return Status::ok();
  });
  return status.is_ok() ? out : status.message();
}

TEST(ArrowCodecs, GiveBackWhatWasPackedAndNoDamage) {
  std::string plain;
  for (int i = 0; i < 300'000; ++i) plain += static_cast<char>('a' + i % 7);
  for (const ArrowCodec codec : {ArrowCodec::kLz4, ArrowCodec::kZstd}) {
    std::string packed;
    append_packed(codec, span_of(plain), packed);
    EXPECT_LT(packed.size(), plain.size() / 10);
    EXPECT_EQ(inflated(codec, packed), plain);
    const std::string wrong =
        "is damaged: a compressed buffer does not inflate to the size in its header";
    EXPECT_EQ(inflated(codec, packed.substr(0, packed.size() - 1)), wrong);
    EXPECT_EQ(inflated(codec, packed + "x"), wrong);
    for (const uint64_t lie :
         {plain.size() - 1, plain.size() + 1, uint64_t{0}, uint64_t{1} << 62}) {
      std::string lying = packed;
      EXPECT_EQ(inflated(codec, lying.replace(0, 8, text_of(lie, 8))), wrong) << lie;
    }
    std::string random;
    append_packed(codec, span_of(std::string("\x01\x02")), random);
    EXPECT_EQ(random, text_of(UINT64_MAX, 8) + "\x01\x02") << "stored, where it does not shrink";
    EXPECT_EQ(inflated(codec, random), "\x01\x02");
  }
}

// The bomb is refused by what it says of itself, before anything is inflated.
TEST(ArrowCodecs, ABombIsRefusedByWhatItSays) {
  const std::string bomb = arrow_sample("bomb");
  const auto layout = parse_arrow(span_of(bomb));
  ASSERT_TRUE(layout.is_ok()) << layout.status().message();
  uint64_t given = 0;
  const Status status =
      inflate_arrow(span_of(bomb), *layout, {0}, [&](std::span<const uint8_t> piece, uint64_t) {
        given += piece.size();
        return Status::ok();
      });
  EXPECT_THAT(status.message(), Says("looks damaged"));
  EXPECT_EQ(given, 0U);
}

}  // namespace
}  // namespace lockstep::data
