#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "data/dataset/dataset.h"
#include "data/formats/arrays/npz_pair.h"
#include "data/open/detect_format.h"
#include "data/open/inspect.h"
#include "data/open/open_dataset.h"
#include "tests/support/fails_with.h"
#include "tests/support/files.h"
#include "tests/support/idx_writer.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/data/samples/npz_samples.h"
#include "tests/unit/data/support/samples_of.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class NpzDataset : public testing::Test {
 protected:
  std::string put(const std::string& name, const std::string& sample) {
    write_file(dir_.path(name), npz_sample(sample));
    return dir_.path(name);
  }
  Result<std::unique_ptr<Dataset>> open(const std::string& path, Split split = Split::kTrain,
                                        const std::string& format = "auto") {
    return open_dataset(spec_of(path, format), split, cache_.path());
  }
  std::string failure(const std::string& sample, Split split = Split::kTrain) {
    const auto dataset = open(put("x.npz", sample), split);
    return dataset.is_ok() ? "no failure" : dataset.status().message();
  }
  size_t cached() const {
    size_t files = 0;
    for (const auto& entry : fs::directory_iterator(cache_.path()))
      files += entry.path().string().ends_with(".inflated") ? 1U : 0U;
    return files;
  }
  TemporaryDirectory dir_;
  TemporaryDirectory cache_;
};

std::vector<uint32_t> all_labels(const Dataset& dataset) {
  std::vector<uint32_t> labels;
  for (uint64_t i = 0; i < dataset.samples(); ++i) labels.push_back(label_of(dataset, i));
  return labels;
}

TEST_F(NpzDataset, OneFileHoldsBothSplits) {
  const std::string path = put("mnist.npz", "mnist");
  EXPECT_EQ(*detect_format(path), "npz");
  EXPECT_TRUE(has_eval_files(path));
  const auto train = open(path);
  ASSERT_TRUE(train.is_ok()) << train.status().message();
  EXPECT_EQ((*train)->format(), "npz");
  EXPECT_EQ((*train)->shape(), (SampleShape{1, 5, 6}));
  EXPECT_THAT(all_labels(**train), ElementsAre(3, 0, 2, 1));
  for (uint64_t i = 0; i < 4; ++i)
    for (size_t k = 0; k < 30; ++k) EXPECT_EQ(stored_sample(**train, i)[k], 30 * i + k);
  const auto eval = open(path, Split::kEval);
  ASSERT_TRUE(eval.is_ok()) << eval.status().message();
  EXPECT_THAT(all_labels(**eval), ElementsAre(3, 0));
  EXPECT_EQ(stored_sample(**eval, 1)[0], 130);
  EXPECT_EQ(cached(), 0U) << "it is read where it lies";
  EXPECT_THAT((*train)->name_of(0), Names("mnist.npz", "at byte"));
  const auto seen = inspect_data(spec_of(path), cache_.path());
  ASSERT_TRUE(seen.is_ok()) << seen.status().message();
  EXPECT_EQ(seen->splits.size(), 2U);
}

TEST_F(NpzDataset, CompressedArraysAreInflatedOnceAndAreTheSameData) {
  const auto plain = open(put("mnist.npz", "mnist"));
  const std::string path = put("packed.npz", "mnist_compressed");
  for (int again = 0; again < 2; ++again) {
    const auto packed = open(path);
    ASSERT_TRUE(packed.is_ok()) << packed.status().message();
    EXPECT_EQ((*packed)->fingerprint(), (*plain)->fingerprint());
    EXPECT_EQ((*packed)->statistics(), (*plain)->statistics());
    EXPECT_THAT((*packed)->name_of(0), Names("packed.npz (inflated)", "at byte"));
    EXPECT_EQ(cached(), 2U);
  }
}

TEST_F(NpzDataset, NamesOfFilesMaySayTheSplit) {
  put("train.npz", "pair");
  EXPECT_FALSE(has_eval_files(dir_.path()));
  put("test.npz", "pair");
  EXPECT_EQ(*detect_format(dir_.path()), "npz");
  EXPECT_TRUE(has_eval_files(dir_.path()));
  EXPECT_THAT((*open(dir_.path()))->files(), ElementsAre(dir_.path("train.npz")));
  EXPECT_THAT((*open(dir_.path(), Split::kEval))->files(), ElementsAre(dir_.path("test.npz")));
}

TEST_F(NpzDataset, OfSeveralForEvaluationTheValidationIsTaken) {
  const std::string path = put("bloodmnist.npz", "medmnist");
  EXPECT_EQ((*open(path))->samples(), 4U);
  EXPECT_EQ((*open(path, Split::kEval))->samples(), 1U);
}

TEST_F(NpzDataset, APairWithoutASplitServesBoth) {
  const std::string path = put("x.npz", "pair");
  EXPECT_FALSE(has_eval_files(path));
  EXPECT_EQ((*open(path, Split::kEval))->samples(), 4U);
  EXPECT_EQ(inspect_data(spec_of(path), cache_.path())->splits.size(), 1U);
}

TEST_F(NpzDataset, WhatIsWrongIsSaidWithFileAndArray) {
  EXPECT_THAT(failure("two"), AllOf(Names("x.npz", "images and x"), Says("both")));
  EXPECT_THAT(failure("unlabelled"), AllOf(Names("x.npz", "labels"), Says("no array")));
  EXPECT_THAT(failure("empty"), AllOf(Names("x.npz", "images"), Says("no array")));
  std::string cut = npz_sample("pair");
  write_file(dir_.path("cut.npz"), cut.substr(0, cut.size() - 5));
  EXPECT_THAT(open(dir_.path("cut.npz")).status().message(),
              AllOf(HasSubstr("cut.npz"), HasSubstr("is truncated")));
}

// A byte of what is compressed, and of its checksum.
TEST_F(NpzDataset, DamageInsideIsFoundWhenItIsInflated) {
  const std::string good = npz_sample("mnist_compressed");
  const size_t list = good.find("PK\x01\x02");
  for (const size_t at : {size_t{100}, list + 16}) {
    std::string damaged = good;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
    write_file(dir_.path("x.npz"), damaged);
    const auto dataset = open(dir_.path("x.npz"));
    ASSERT_FALSE(dataset.is_ok());
    EXPECT_THAT(dataset, FailsWith(Code::kBadData, HasSubstr("x.npz (x_train) ")));
  }
}

// It says in the list of its files that it inflates to much more than its array's header does.
TEST_F(NpzDataset, AnArchiveThatPromisesTooMuchIsRefusedBeforeItIsInflated) {
  std::string bomb = npz_sample("bomb");
  EXPECT_TRUE(open(put("x.npz", "bomb")).is_ok());
  const size_t list = bomb.find("PK\x01\x02");
  for (size_t i = 0; i < 4; ++i) bomb[list + 24 + i] = static_cast<char>(i == 3 ? 0x70 : 0);
  write_file(dir_.path("y.npz"), bomb);
  EXPECT_THAT(open(dir_.path("y.npz")).status().message(),
              AllOf(HasSubstr("y.npz (images) "), Says("2000128")));
}

TEST_F(NpzDataset, AnArrayIsNoTableOfLabels) {
  write_file(dir_.path("x.npz"), npz_sample("pair"));
  const auto pair = find_npz_pair(dir_.path("x.npz"), Split::kTrain);
  ASSERT_TRUE(pair.is_ok());
  const NpzPair swapped{pair->labels, pair->images, false};
  EXPECT_THAT(open_npz_dataset(swapped, "npz", cache_.path(), {}).status().message(),
              AllOf(Names("x.npz (labels)"), Says("(4, 1)")));
}

}  // namespace
}  // namespace lockstep::data
