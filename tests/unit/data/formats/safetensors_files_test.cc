
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/dataset/dataset.h"
#include "data/loader/sample_reader.h"
#include "data/open/detect_format.h"
#include "data/open/inspect.h"
#include "data/open/open_dataset.h"
#include "tests/support/fails_with.h"
#include "tests/support/files.h"
#include "tests/support/idx_writer.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/data/samples/npy_samples.h"
#include "tests/unit/data/samples/safetensors_samples.h"
#include "tests/unit/data/support/samples_of.h"

namespace lockstep::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class SafetensorsFiles : public testing::Test {
 protected:
  std::string put(const std::string& name, const std::string& sample) {
    write_file(dir_.path(name), safetensors_sample(sample));
    return dir_.path(name);
  }
  Result<std::unique_ptr<Dataset>> open(const std::string& path, Split split = Split::kTrain,
                                        const std::string& format = "auto") {
    return open_dataset(spec_of(path, format), split, cache_.path(), {}, {4, 0});
  }
  std::string failure(const std::string& sample, const std::string& format = "auto") {
    const auto dataset = open(put("x.safetensors", sample), Split::kTrain, format);
    return dataset.is_ok() ? "no failure" : dataset.status().message();
  }
  TemporaryDirectory dir_;
  TemporaryDirectory cache_;
};

std::vector<uint32_t> labels_in_order(const Dataset& dataset) {
  std::vector<uint32_t> labels;
  for (uint64_t i = 0; i < dataset.samples(); ++i) labels.push_back(label_of(dataset, i));
  return labels;
}

TEST_F(SafetensorsFiles, OneFileHoldsBothSplits) {
  const std::string path = put("mnist.safetensors", "mnist");
  EXPECT_EQ(*detect_format(path), "safetensors");
  EXPECT_TRUE(has_eval_files(path));
  const auto train = open(path);
  ASSERT_TRUE(train.is_ok()) << train.status().message();
  EXPECT_EQ((*train)->format(), "safetensors");
  EXPECT_EQ((*train)->shape(), (SampleShape{1, 5, 6}));
  EXPECT_THAT(labels_in_order(**train), ElementsAre(3, 0, 2, 1));
  for (uint64_t i = 0; i < 4; ++i)
    for (size_t k = 0; k < 30; ++k) EXPECT_EQ(stored_sample(**train, i)[k], 30 * i + k);
  EXPECT_THAT((*train)->name_of(0), Names("mnist.safetensors", "at byte"));
  const auto eval = open(path, Split::kEval);
  ASSERT_TRUE(eval.is_ok()) << eval.status().message();
  EXPECT_THAT(labels_in_order(**eval), ElementsAre(3, 0));
  EXPECT_EQ(stored_sample(**eval, 1)[0], 130);
  const auto seen = inspect_data(spec_of(path), cache_.path());
  ASSERT_TRUE(seen.is_ok()) << seen.status().message();
  EXPECT_EQ(seen->splits.size(), 2U);
}

TEST_F(SafetensorsFiles, NamesOfFilesMaySayTheSplit) {
  put("train.safetensors", "pair");
  EXPECT_FALSE(has_eval_files(dir_.path()));
  put("val.safetensors", "pair");
  EXPECT_EQ(*detect_format(dir_.path()), "safetensors");
  EXPECT_TRUE(has_eval_files(dir_.path()));
  EXPECT_THAT((*open(dir_.path()))->files(), ElementsAre(dir_.path("train.safetensors")));
  EXPECT_THAT((*open(dir_.path(), Split::kEval))->files(),
              ElementsAre(dir_.path("val.safetensors")));
}

TEST_F(SafetensorsFiles, APairWithoutASplitServesBoth) {
  const std::string path = put("x.safetensors", "pair");
  EXPECT_FALSE(has_eval_files(path));
  EXPECT_EQ((*open(path, Split::kEval))->samples(), 4U);
  EXPECT_EQ(inspect_data(spec_of(path), cache_.path())->splits.size(), 1U);
}

TEST_F(SafetensorsFiles, ChannelsAreWhereTheShapeOrTheFormatSays) {
  const auto first = open(put("a.safetensors", "colours"));
  const auto last = open(put("b.safetensors", "colours_last"));
  EXPECT_EQ((*first)->shape(), (SampleShape{3, 5, 6}));
  EXPECT_EQ((*last)->shape(),
            (SampleShape{.channels = 3, .height = 5, .width = 6, .channels_last = true}));
  const std::string either = put("c.safetensors", "either");
  EXPECT_EQ(open(either).status().code(), Code::kUsage);
  EXPECT_EQ((*open(either, Split::kTrain, "npy_nchw"))->shape().width, 3U);
  EXPECT_EQ((*open(either, Split::kTrain, "npy_nhwc"))->shape().width, 5U);
  EXPECT_EQ(inspect_data(spec_of(either, "npy_nhwc"), cache_.path())->splits.size(), 1U);
}

// The same tokens, whatever type and file they are in.
TEST_F(SafetensorsFiles, TheOnlyTensorOfAFileIsTokens) {
  for (const char* sample : {"tokens_u16", "tokens_u32", "tokens_i32", "tokens_i64"}) {
    const std::string path = put("train.safetensors", sample);
    for (const char* format : {"auto", "safetensors", "tokens"}) {
      const auto dataset = open(path, Split::kTrain, format);
      ASSERT_TRUE(dataset.is_ok()) << sample << ": " << dataset.status().message();
      EXPECT_EQ((*dataset)->format(), "tokens");
      EXPECT_EQ((*dataset)->samples(), 2U);
      EXPECT_EQ((*dataset)->classes(), 111U);
      const auto reader = SampleReader::create(**dataset, {}, {});
      ASSERT_TRUE(reader.is_ok());
      int64_t input[4];
      int64_t labels[4];
      ASSERT_TRUE(reader->read(1, reinterpret_cast<std::byte*>(input), labels).is_ok());
      EXPECT_THAT(input, ElementsAre(104, 105, 106, 107));
      EXPECT_THAT(labels, ElementsAre(105, 106, 107, 108));
    }
  }
  put("train.safetensors", "tokens_u16");
  put("val.safetensors", "tokens_u16");
  EXPECT_EQ(*detect_format(dir_.path()), "tokens");
  EXPECT_TRUE(has_eval_files(dir_.path()));
  const TemporaryDirectory other;
  write_file(other.path("x.npy"), npy_sample("tokens_uint16"));
  EXPECT_EQ((*open(dir_.path()))->fingerprint(), (*open(other.path("x.npy")))->fingerprint());
}

TEST_F(SafetensorsFiles, WhatIsWrongIsSaidWithFileAndTensor) {
  EXPECT_THAT(failure("floats"),
              AllOf(Names("x.safetensors (images)"), Says("F32"), Advises("U8")));
  EXPECT_THAT(failure("float_labels"), AllOf(Names("x.safetensors (labels)"), Says("F64")));
  EXPECT_THAT(failure("fewer_labels"), AllOf(Names("x.safetensors (labels)"), Says("3 labels")));
  EXPECT_THAT(failure("unlabelled"), AllOf(Names("x.safetensors", "labels"), Says("no array")));
  EXPECT_THAT(failure("no_images"), AllOf(Names("(images)"), Says("no sample")));
  EXPECT_THAT(failure("tokens_f32"), AllOf(Names("(input_ids)"), Says("F32"), Advises("U16")));
  EXPECT_THAT(failure("tokens_table"), AllOf(Names("(ids)"), Says("[2, 5]")));
  EXPECT_THAT(failure("two_tensors"), AllOf(Names("x.safetensors"), Says("2 tensors")));
  EXPECT_THAT(failure("nothing"), AllOf(Names("x.safetensors"), Says("0 tensors")));
  EXPECT_THAT(failure("tokens_negative"), AllOf(Names("x.safetensors", "at offset"),
                                                Says("token -9"), HasSubstr("beyond the")));
  EXPECT_THAT(failure("tokens_huge"),
              AllOf(Names("x.safetensors", "at offset"), Says("token 1099511627776")));
}

TEST_F(SafetensorsFiles, AFileThatIsCutOrLiesIsRefusedByName) {
  const std::string good = safetensors_sample("pair");
  for (const size_t bytes : {size_t{0}, size_t{7}, size_t{40}, good.size() - 1}) {
    write_file(dir_.path("x.safetensors"), good.substr(0, bytes));
    const auto cut = open(dir_.path("x.safetensors"));
    ASSERT_FALSE(cut.is_ok()) << bytes;
    EXPECT_THAT(cut, FailsWith(Code::kBadData, Names("x.safetensors"), Says("not a valid")));
  }
  write_file(dir_.path("x.safetensors"), good + "x");
  EXPECT_THAT(open(dir_.path("x.safetensors")).status().message(), Says("the file has"));
  std::string absurd = good;
  absurd.replace(0, 8, std::string(8, '\x7f'));
  write_file(dir_.path("x.safetensors"), absurd);
  EXPECT_THAT(open(dir_.path("x.safetensors")).status().message(), Says("limit"));
}

}  // namespace
}  // namespace lockstep::data
