#include "comm/store/store_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/store/memory_blobs.h"
#include "tests/support/fails_with.h"
#include "tests/unit/store/bucket_server.h"

namespace lockstep::store {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Checked {
  bool is_good = false;
  std::vector<std::string> subjects;
  std::string bad;       // the texts of bad findings
  std::string warnings;  // and of warnings
};

Checked check(BlobStore& blobs) {
  Checked checked;
  const auto tell = [&](const StoreFinding& finding) {
    checked.subjects.push_back(finding.subject);
    if (finding.grade == StoreFinding::Grade::kBad) checked.bad += finding.text + "\n";
    if (finding.grade == StoreFinding::Grade::kWarning) checked.warnings += finding.text + "\n";
  };
  checked.is_good = check_store(blobs, {.part_bytes = 5 * 1'048'576, .racers = 8}, tell);
  return checked;
}

void expect_good(BlobStore& blobs) {
  const Checked checked = check(blobs);
  EXPECT_TRUE(checked.is_good) << checked.bad;
  EXPECT_THAT(checked.subjects, ElementsAre("create", "condition", "race", "read", "list", "upload",
                                            "abandon", "remove"));
  EXPECT_EQ(checked.bad + checked.warnings, "");
  EXPECT_THAT(*blobs.list(""), IsEmpty());
  EXPECT_THAT(*blobs.uploads(""), IsEmpty());
}

TEST(StoreCheck, AGoodStoreHasEveryFindingAndNothingIsLeftInIt) {
  expect_good(*make_memory_blobs());
  const BucketServer server;
  expect_good(*server.open());
}

TEST(StoreCheck, AStoreThatIgnoresConditionsCannotHoldARun) {
  const BucketServer server(R"({"ignore_conditions": true})");
  const auto blobs = server.open();
  const Checked checked = check(*blobs);
  EXPECT_FALSE(checked.is_good);
  EXPECT_THAT(checked.bad, HasSubstr("overwrites what it was asked only to create"));
  EXPECT_THAT(*blobs->list(""), IsEmpty());
}

TEST(StoreCheck, EachRightThatIsMissingIsNamed) {
  for (const char* right : {"s3:PutObject", "s3:GetObject", "s3:ListBucket", "s3:DeleteObject",
                            "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts",
                            "s3:ListBucketMultipartUploads"}) {
    const BucketServer server(std::string(R"({"deny": [")") + right + R"("]})");
    const Checked checked = check(*server.open());
    EXPECT_FALSE(checked.is_good) << right;
    EXPECT_THAT(checked.bad, HasSubstr(std::string("needs ") + right));
    EXPECT_THAT(checked.bad, HasSubstr("AccessDenied"));
  }
}

TEST(StoreCheck, ARightIsNotNamedWhereTheKeysAreWrong) {
  const BucketServer server;
  const Checked checked = check(*server.open("s3://runs", {{"AWS_SECRET_ACCESS_KEY", "wrong"}}));
  EXPECT_FALSE(checked.is_good);
  EXPECT_THAT(checked.bad, HasSubstr("SignatureDoesNotMatch"));
  EXPECT_THAT(checked.bad, testing::Not(HasSubstr("the role needs")));
}

TEST(StoreCheck, AnswersThatAreLostMakeNoBadStore) {
  const BucketServer server(R"({"lose_answer_every": 3, "fail_every": 4})");
  const auto blobs = server.open();
  const Checked checked = check(*blobs);
  EXPECT_TRUE(checked.is_good) << checked.bad;
  EXPECT_THAT(*blobs->list(""), IsEmpty());
  EXPECT_THAT(*blobs->uploads(""), IsEmpty());
}

TEST(StoreCheck, AListThatLagsIsAWarning) {
  const BucketServer server(R"({"stale_list": 2})");
  const Checked checked = check(*server.open());
  EXPECT_TRUE(checked.is_good) << checked.bad;
  EXPECT_THAT(checked.warnings, HasSubstr("lacks 2 of"));
}

TEST(StoreCheck, AStoreThatIsAwayHasOneFinding) {
  const BucketServer server(R"({"away": true})");
  const Checked checked = check(*server.open());
  EXPECT_FALSE(checked.is_good);
  EXPECT_THAT(checked.subjects, ElementsAre("create", "remove"));
  EXPECT_THAT(checked.warnings, HasSubstr("lockstep-check/"));
}

}  // namespace
}  // namespace lockstep::store
