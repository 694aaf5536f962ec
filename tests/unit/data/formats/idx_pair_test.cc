#include "data/formats/arrays/idx_pair.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/base/split.h"
#include "tests/support/fails_with.h"
#include "tests/support/files.h"
#include "tests/support/idx_writer.h"
#include "tests/support/temporary_directory.h"

namespace lockstep::data {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

class FindIdxPair : public testing::Test {
 protected:
  void put_images(const std::string& name) { write_file(dir_.path(name), some_images(3, 2, 2)); }
  void put_labels(const std::string& name) { write_file(dir_.path(name), some_labels(3)); }
  IdxPair found(Split split) {
    const auto pair = find_idx_pair(dir_.path(), split);
    EXPECT_TRUE(pair.is_ok()) << pair.status().message();
    return pair.is_ok() ? pair.value() : IdxPair{};
  }
  Status error(Split split) { return find_idx_pair(dir_.path(), split).status(); }

  TemporaryDirectory dir_;
};

TEST_F(FindIdxPair, KnowsTheStandardNamesInTheirSpellings) {
  put_images("train-images-idx3-ubyte.gz");
  put_labels("train-labels.idx1-ubyte");
  put_images("t10k-images.idx3-ubyte");
  put_labels("t10k-labels-idx1-ubyte.gz");
  put_labels("README");
  EXPECT_THAT(found(Split::kTrain).images, EndsWith("/train-images-idx3-ubyte.gz"));
  EXPECT_THAT(found(Split::kTrain).labels, EndsWith("/train-labels.idx1-ubyte"));
  EXPECT_THAT(found(Split::kEval).images, EndsWith("/t10k-images.idx3-ubyte"));
  EXPECT_FALSE(found(Split::kEval).serves_both);
}

TEST_F(FindIdxPair, PrefersThePlainFileToItsGzippedTwin) {
  put_images("train-images-idx3-ubyte.gz");
  put_images("train-images-idx3-ubyte");
  put_labels("train-labels-idx1-ubyte");
  EXPECT_THAT(found(Split::kTrain).images, EndsWith("/train-images-idx3-ubyte"));
}

TEST_F(FindIdxPair, RefusesToGuessBetweenTwoSpellings) {
  put_images("train-images-idx3-ubyte");
  put_images("train-images.idx3-ubyte");
  put_labels("train-labels-idx1-ubyte");
  EXPECT_EQ(error(Split::kTrain).code(), Code::kBadData);
  EXPECT_THAT(error(Split::kTrain).message(), HasSubstr("has both"));
}

TEST_F(FindIdxPair, TakesTheOnlyPairOfOtherNamesForEitherSplit) {
  put_images("pictures");
  write_file(dir_.path("answers.gz"), gzip_bytes(some_labels(3)));
  write_file(dir_.path("notes.txt"), "not data");
  for (const Split split : {Split::kTrain, Split::kEval}) {
    EXPECT_THAT(found(split).images, EndsWith("/pictures"));
    EXPECT_THAT(found(split).labels, EndsWith("/answers.gz"));
    EXPECT_TRUE(found(split).serves_both);
  }
  put_images("more pictures");
  EXPECT_EQ(error(Split::kTrain).code(), Code::kBadData);
}

TEST_F(FindIdxPair, NamesWhatIsMissing) {
  put_images("train-images-idx3-ubyte");
  EXPECT_EQ(error(Split::kTrain).code(), Code::kNoInput);
  EXPECT_THAT(error(Split::kTrain).message(), HasSubstr("lacks train-labels-idx1-ubyte"));
  EXPECT_THAT(error(Split::kEval).message(), HasSubstr("lacks t10k-images-idx3-ubyte"));

  const TemporaryDirectory empty;
  const auto nothing = find_idx_pair(empty.path(), Split::kTrain);
  EXPECT_THAT(nothing, FailsWith(Code::kNoInput, Says("no IDX")));

  EXPECT_FALSE(has_idx_file(empty.path()));
  EXPECT_TRUE(has_idx_file(dir_.path("")));

  const auto nowhere = find_idx_pair(dir_.path("nowhere"), Split::kTrain);
  EXPECT_THAT(nowhere, FailsWith(Code::kNoInput, Says("not exist")));

  const auto file = find_idx_pair(dir_.path("train-images-idx3-ubyte"), Split::kTrain);
  EXPECT_THAT(file, FailsWith(Code::kNoInput, Says("not a directory")));
}

}  // namespace
}  // namespace lockstep::data
