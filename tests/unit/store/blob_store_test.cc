// What every store promises: one in memory, and a bucket behind a real server.
#include "comm/store/blob_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "comm/base/crc32c.h"
#include "comm/store/memory_blobs.h"
#include "tests/support/fails_with.h"
#include "tests/unit/store/bucket_server.h"

namespace lockstep::store {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

std::unique_ptr<BlobStore> memory(const std::string&) {
  return make_memory_blobs();
}

std::unique_ptr<BlobStore> bucket(const std::string& name) {
  static const BucketServer server;  // of all tests: a start takes longer than a test
  return server.open("s3://runs/" + name);
}

// Some requests fail, and some answers are lost after the request was done.
std::unique_ptr<BlobStore> nasty_bucket(const std::string& name) {
  static const BucketServer server(R"({"fail_every": 3, "fail_after_every": 7,
      "lose_answer_every": 5, "lose_request_every": 11, "conflict_every": 2})");
  static const std::atomic<bool> never = false;
  S3Options options = server.options();
  options.retries.attempts = 50;
  return make_s3_blobs("s3://runs/" + name, options, never);
}

struct Kind {
  const char* name;
  std::unique_ptr<BlobStore> (*open)(const std::string& name);
  bool loses_answers = false;
};

class Blobs : public testing::TestWithParam<Kind> {
 protected:
  // Where an answer may be lost, whoever made a key may be told that it was there.
  void expect_created(const Result<Creation>& created) const {
    ASSERT_TRUE(created.is_ok()) << created.status().message();
    if (!GetParam().loses_answers) {
      EXPECT_EQ(*created, Creation::kDone);
    }
  }

  const std::unique_ptr<BlobStore> opened_ =
      GetParam().open(testing::UnitTest::GetInstance()->current_test_info()->name());
  BlobStore& blobs_ = *opened_;
};

INSTANTIATE_TEST_SUITE_P(All, Blobs,
                         testing::Values(Kind{"memory", memory}, Kind{"bucket", bucket},
                                         Kind{"nasty_bucket", nasty_bucket, true}),
                         [](const auto& kind) { return kind.param.name; });

TEST_P(Blobs, AKeyIsCreatedOnceAndKeepsWhatItsMakerWrote) {
  expect_created(blobs_.create("a/b c+%é", "first"));
  EXPECT_EQ(*blobs_.create("a/b c+%é", "second"), Creation::kWasThere);
  EXPECT_EQ(*blobs_.get("a/b c+%é", kMost), "first");
}

TEST_P(Blobs, OfManyThatCreateOneKeyOneWinsAndItsBytesAreThere) {
  std::vector<std::thread> racers;
  std::vector<Result<Creation>> results(8, Creation::kWasThere);
  for (size_t i = 0; i < results.size(); ++i)
    racers.emplace_back([&, i] { results[i] = blobs_.create("race", std::to_string(i)); });
  for (std::thread& racer : racers) racer.join();
  const auto bytes = blobs_.get("race", kMost);
  ASSERT_TRUE(bytes.is_ok() && *bytes);
  for (size_t i = 0; i < results.size(); ++i) {
    ASSERT_TRUE(results[i].is_ok()) << results[i].status().message();
    if (*results[i] == Creation::kDone) {
      EXPECT_EQ(**bytes, std::to_string(i));
    }
  }
  const auto winners =
      std::ranges::count_if(results, [](const auto& result) { return *result == Creation::kDone; });
  EXPECT_LE(winners, 1);
  if (!GetParam().loses_answers) {
    EXPECT_EQ(winners, 1);
  }
}

TEST_P(Blobs, WhatIsOverwrittenOrRemovedIsGone) {
  EXPECT_TRUE(blobs_.put("x", "one").is_ok());
  EXPECT_TRUE(blobs_.put("x", "").is_ok());
  EXPECT_EQ(*blobs_.get("x", kMost), "");
  EXPECT_TRUE(blobs_.remove("x").is_ok());
  EXPECT_EQ(*blobs_.get("x", kMost), std::nullopt);
  EXPECT_TRUE(blobs_.remove("x").is_ok());
  expect_created(blobs_.create("x", "again"));
}

TEST_P(Blobs, ARangeIsReadWholeOrNotAtAll) {
  EXPECT_TRUE(blobs_.put("x", "0123456789").is_ok());
  std::vector<uint8_t> out(4);
  ASSERT_TRUE(blobs_.read("x", 6, out).is_ok());
  EXPECT_THAT(out, ElementsAre('6', '7', '8', '9'));
  for (const uint64_t offset : {7, 10, 99})
    EXPECT_THAT(blobs_.read("x", offset, out), FailsWith(Code::kBadData, Names("x"))) << offset;
  EXPECT_THAT(blobs_.read("none", 0, out), FailsWith(Code::kNoInput, Names("none")));
}

TEST_P(Blobs, WhatIsLargerThanAskedForIsRefused) {
  EXPECT_TRUE(blobs_.put("x", "0123456789").is_ok());
  EXPECT_TRUE(blobs_.get("x", 10).is_ok());
  EXPECT_THAT(blobs_.get("x", 9), FailsWith(Code::kBadData, Names("x", "9")));
}

TEST_P(Blobs, AListHasTheKeysBelowAPrefix) {
  for (const char* key : {"s/1", "s/2&<", "t", "s"})
    EXPECT_TRUE(blobs_.put(key, std::string(key)).is_ok());
  const auto listed = blobs_.list("s/");
  ASSERT_TRUE(listed.is_ok()) << listed.status().message();
  std::vector<std::pair<std::string, uint64_t>> found;
  for (const Blob& blob : *listed) found.emplace_back(blob.key, blob.bytes);
  EXPECT_THAT(found, UnorderedElementsAre(std::pair("s/1", 3), std::pair("s/2&<", 5)));
  EXPECT_EQ(blobs_.list("")->size(), 4U);
  EXPECT_THAT(*blobs_.list("none"), IsEmpty());
}

TEST_P(Blobs, PartsBecomeAnObjectWhenTheyAreCompleted) {
  const auto id = blobs_.begin("whole");
  ASSERT_TRUE(id.is_ok()) << id.status().message();
  const std::string big(5 * 1'048'576, 'x');
  const auto second = blobs_.put_part("whole", *id, 2, "end");
  const auto first = blobs_.put_part("whole", *id, 1, big);
  ASSERT_TRUE(first.is_ok() && second.is_ok());
  EXPECT_EQ(first->crc32c, crc32c(big));
  EXPECT_EQ(*blobs_.get("whole", kMost), std::nullopt);
  const auto uploads = blobs_.uploads("who");
  ASSERT_TRUE(uploads.is_ok()) << uploads.status().message();
  EXPECT_THAT(*uploads, testing::Contains(Upload{"whole", *id}));
  const auto parts = blobs_.parts("whole", *id);
  ASSERT_TRUE(parts.is_ok()) << parts.status().message();
  ASSERT_EQ(parts->size(), 2U);
  EXPECT_EQ(*parts, (std::vector<Part>{*first, *second}));
  ASSERT_TRUE(blobs_.complete("whole", *id, {*first, *second}).is_ok());
  EXPECT_EQ(*blobs_.get("whole", kMost), big + "end");
  EXPECT_TRUE(blobs_.complete("whole", *id, {*first, *second}).is_ok());  // an answer was lost
}

TEST_P(Blobs, AnUploadThatIsAbandonedIsNoObject) {
  const auto id = blobs_.begin("left");
  ASSERT_TRUE(id.is_ok());
  const auto part = blobs_.put_part("left", *id, 1, "x");
  ASSERT_TRUE(part.is_ok());
  EXPECT_TRUE(blobs_.abandon("left", *id).is_ok());
  EXPECT_TRUE(blobs_.abandon("left", *id).is_ok());
  EXPECT_THAT(blobs_.complete("left", *id, {*part}), FailsWith(Code::kNoInput, Names("left")));
  EXPECT_THAT(blobs_.put_part("left", *id, 1, "x"), FailsWith(Code::kNoInput, Names("left")));
  EXPECT_THAT(blobs_.parts("left", *id), FailsWith(Code::kNoInput, Names("left")));
  EXPECT_EQ(*blobs_.get("left", kMost), std::nullopt);
}

TEST_P(Blobs, AnOlderObjectOfTheSameSizeIsNotTakenForWhatWasRefused) {
  ASSERT_TRUE(blobs_.put("old", "y").is_ok());
  const auto id = blobs_.begin("old");
  ASSERT_TRUE(id.is_ok());
  const auto part = blobs_.put_part("old", *id, 1, "x");
  ASSERT_TRUE(part.is_ok());
  Part other = *part;
  other.etag = "\"0\"";
  EXPECT_FALSE(blobs_.complete("old", *id, {other}).is_ok());
  EXPECT_TRUE(blobs_.abandon("old", *id).is_ok());
  EXPECT_THAT(blobs_.complete("old", *id, {*part}), FailsWith(Code::kNoInput, Names("old")));
  EXPECT_EQ(*blobs_.get("old", kMost), "y");
}

TEST_P(Blobs, PartsThatAreNotThereAreNoObject) {
  const auto id = blobs_.begin("odd");
  ASSERT_TRUE(id.is_ok());
  auto part = blobs_.put_part("odd", *id, 1, "x");
  ASSERT_TRUE(part.is_ok());
  Part other = *part;
  other.etag = "\"0\"";
  EXPECT_FALSE(blobs_.complete("odd", *id, {other}).is_ok());
  EXPECT_EQ(*blobs_.get("odd", kMost), std::nullopt);
}

}  // namespace
}  // namespace lockstep::store
