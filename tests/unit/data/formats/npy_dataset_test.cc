#include "data/formats/arrays/npy_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "data/dataset/facts.h"
#include "data/loader/sample_reader.h"
#include "data/open/inspect.h"
#include "data/open/open_dataset.h"
#include "tests/support/fails_with.h"
#include "tests/support/files.h"
#include "tests/support/idx_writer.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/data/samples/npy_samples.h"
#include "tests/unit/data/support/samples_of.h"

namespace lockstep::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class NpyDataset : public testing::Test {
 protected:
  void put(const std::string& name, const std::string& sample) {
    write_file(dir_.path(name), npy_sample(sample));
  }
  Result<std::unique_ptr<Dataset>> open(const std::string& format = "auto",
                                        Split split = Split::kTrain) {
    return open_dataset(spec_of(dir_.path(), format), split, dir_.path("cache"), {}, {4, 0});
  }
  // Opens these images and labels.
  Result<std::unique_ptr<Dataset>> open_pair(const std::string& images, const std::string& labels,
                                             const std::string& format = "auto") {
    put("images.npy", images);
    put("labels.npy", labels);
    return open(format);
  }
  std::string pair_error(const std::string& images, const std::string& labels,
                         const std::string& file, Code code = Code::kBadData) {
    const auto dataset = open_pair(images, labels);
    EXPECT_EQ(dataset.status().code(), code) << dataset.status().message();
    EXPECT_THAT(dataset.status().message(),
                AllOf(HasSubstr(dir_.path(file)), Not(HasSubstr("\n"))));
    return dataset.status().message();
  }

  TemporaryDirectory dir_;
};

// Returns the bytes of one sample, (C, H, W).
std::vector<uint8_t> bytes_read(const Dataset& dataset, uint64_t i) {
  const auto reader = SampleReader::create(dataset, {}, dataset.statistics(), ImageForm::kStored);
  std::vector<uint8_t> out(reader->input_bytes());
  int64_t label = 0;
  EXPECT_TRUE(reader->read(i, reinterpret_cast<std::byte*>(out.data()), &label).is_ok());
  return out;
}

std::vector<float> floats_read(const Dataset& dataset, uint64_t i) {
  const auto reader = SampleReader::create(dataset, {"normalize"}, dataset.statistics());
  std::vector<float> out(dataset.shape().elements());
  int64_t label = 0;
  EXPECT_TRUE(reader->read(i, reinterpret_cast<std::byte*>(out.data()), &label).is_ok());
  return out;
}

TEST_F(NpyDataset, GreyImagesAreReadWithTheirLabels) {
  const auto dataset = open_pair("images_nhw", "labels_int64");
  ASSERT_TRUE(dataset.is_ok()) << dataset.status().message();
  EXPECT_EQ((*dataset)->format(), "npy");
  EXPECT_EQ((*dataset)->samples(), 4U);
  EXPECT_EQ((*dataset)->shape(), (SampleShape{1, 15, 6}));
  EXPECT_EQ((*dataset)->classes(), 4U);
  EXPECT_THAT((*dataset)->files(), ElementsAre(dir_.path("images.npy"), dir_.path("labels.npy")));
  for (uint64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(label_of(**dataset, i), (std::vector<uint32_t>{3, 0, 2, 1})[i]);
    const std::vector<uint8_t> pixels = bytes_read(**dataset, i);
    for (size_t k = 0; k < 90; ++k) EXPECT_EQ(pixels[k], (90 * i + k) % 256);
  }
}

// PIXELS[n][h][w][c] of the script counts from 0; a model gets [c][h][w] of it.
TEST_F(NpyDataset, ChannelsLastAndFirstAreTheSameImagesToAModel) {
  const auto last = open_pair("images_nhwc", "labels_uint8");
  ASSERT_TRUE(last.is_ok()) << last.status().message();
  EXPECT_TRUE((*last)->shape().channels_last);
  EXPECT_EQ((*last)->shape().channels, 3U);
  EXPECT_EQ((*last)->shape().height, 5U);
  EXPECT_EQ((*last)->shape().width, 6U);
  const std::vector<uint8_t> pixels = bytes_read(**last, 2);
  for (size_t c = 0; c < 3; ++c)
    for (size_t hw = 0; hw < 30; ++hw) EXPECT_EQ(pixels[30 * c + hw], (180 + 3 * hw + c) % 256);

  const std::string last_fingerprint = (*last)->fingerprint();
  const std::vector<float> floats = floats_read(**last, 3);
  const auto first = open_pair("images_nchw", "labels_uint8");
  ASSERT_TRUE(first.is_ok()) << first.status().message();
  EXPECT_FALSE((*first)->shape().channels_last);
  EXPECT_EQ(bytes_read(**first, 2), pixels);
  EXPECT_EQ(floats_read(**first, 3), floats);
  EXPECT_EQ((*first)->statistics().size(), 3U);
  EXPECT_NE((*first)->fingerprint(), last_fingerprint);
}

TEST_F(NpyDataset, StatisticsAndEvaluationDoNotDependOnTheLayout) {
  const TemporaryDirectory other;
  write_file(other.path("images.npy"), npy_sample("images_nchw"));
  write_file(other.path("labels.npy"), npy_sample("labels_uint8"));
  const auto first = open_dataset(spec_of(other.path()), Split::kEval, other.path("cache"));
  const auto last = open_pair("images_nhwc", "labels_uint8");
  ASSERT_TRUE(first.is_ok() && last.is_ok());
  EXPECT_EQ((*first)->statistics(), (*last)->statistics());
  EXPECT_TRUE(check_eval_fits_train(**last, **first).is_ok());
}

TEST_F(NpyDataset, AnAxisThatCannotBeSeenIsAsked) {
  EXPECT_THAT(pair_error("images_either", "labels_uint8", "images.npy", Code::kUsage),
              AllOf(Says("(4, 3, 30, 1)"), HasSubstr("npy_nchw"), HasSubstr("npy_nhwc")));
  EXPECT_EQ((*open("npy_nchw"))->shape(), (SampleShape{3, 30, 1}));
  EXPECT_EQ((*open("npy_nhwc"))->shape(), (SampleShape{1, 3, 30}));  // one channel: either order
  // Nor where both axes have many.
  NpyHeader header{'u', 1, {2, 13, 64, 64}, 128, 2 * 13 * 64 * 64};
  EXPECT_EQ(npy_image_shape(header, "npy").status().code(), Code::kUsage);
  EXPECT_EQ(npy_image_shape(header, "npy_nchw")->channels, 13U);
  EXPECT_EQ(npy_image_shape(header, "npy_nhwc")->channels, 64U);
}

TEST_F(NpyDataset, NamesSayTheSplit) {
  put("train_images.npy", "images_nhwc");
  put("train-labels.npy", "labels_int64");
  put("test_images.npy", "images_nchw");
  put("labels_test.npy", "labels_uint8");
  EXPECT_THAT((*open())->files()[0], HasSubstr("train_images"));
  EXPECT_THAT((*open("npy", Split::kEval))->files()[1], HasSubstr("labels_test"));
  const auto seen = inspect_data(spec_of(dir_.path()), "");
  ASSERT_TRUE(seen.is_ok()) << seen.status().message();
  EXPECT_EQ(seen->splits.size(), 2U);
  EXPECT_THAT(to_text(*seen), HasSubstr("stored channels-last"));
  put("val_labels.npy", "labels_uint8");
  EXPECT_THAT(open("auto", Split::kEval).status().message(),
              AllOf(Names("val_images.npy"), Says("no array")));
  put("val_images.npy", "images_nchw");
  EXPECT_THAT((*open("npy", Split::kEval))->files()[0], HasSubstr("val_images"));
  std::filesystem::remove(dir_.path("train-labels.npy"));
  EXPECT_EQ(open().status().code(), Code::kNoInput);
  EXPECT_THAT(open().status().message(), AllOf(Names("train_labels.npy"), Says("no array")));
}

TEST_F(NpyDataset, APairWithoutASplitServesBoth) {
  ASSERT_TRUE(open_pair("images_nhw", "labels_uint8").is_ok());
  EXPECT_TRUE(open("auto", Split::kEval).is_ok());
  const auto seen = inspect_data(spec_of(dir_.path()), "");
  EXPECT_EQ(seen->splits.size(), 1U);
  EXPECT_EQ(seen->splits[0].split, "data");
}

TEST_F(NpyDataset, LabelsMayBeAColumn) {
  const auto dataset = open_pair("images_nhw", "labels_column");
  ASSERT_TRUE(dataset.is_ok()) << dataset.status().message();
  EXPECT_EQ(label_of(**dataset, 2), 2U);
}

TEST_F(NpyDataset, DamageIsToldWithTheFileAndWhatToDo) {
  EXPECT_THAT(pair_error("images_nhw", "images_nhw", "labels.npy"), HasSubstr("a.reshape(-1)"));
  EXPECT_THAT(pair_error("images_nhw", "labels_float", "labels.npy"),
              AllOf(Says("float32"), Advises("whole numbers")));
  EXPECT_THAT(pair_error("images_nhw", "labels_negative", "labels.npy"),
              AllOf(Names("sample 1"), Says("label -1")));
  EXPECT_THAT(pair_error("images_nhw", "labels_large", "labels.npy"),
              AllOf(Names("sample 2"), Says("label 9223372036854775807", "65535")));
  EXPECT_THAT(pair_error("images_nhw", "tokens_uint16", "labels.npy"),
              Says("11 labels", "belong together"));
  EXPECT_THAT(pair_error("tokens_uint16", "labels_uint8", "images.npy"),
              AllOf(Says("uint16"), Advises("uint8")));
  EXPECT_THAT(pair_error("labels_uint8", "labels_uint8", "images.npy"),
              AllOf(Says("(4,)"), Advises("(N, H, W)")));
  EXPECT_THAT(pair_error("fortran_order", "labels_uint8", "images.npy"), HasSubstr("Fortran"));
  write_file(dir_.path("images.npy"), npy_sample("images_nhw").substr(0, 400));
  write_file(dir_.path("labels.npy"), npy_sample("labels_uint8"));
  EXPECT_THAT(open().status().message(),
              AllOf(Names("images.npy"), Says("truncated", "400", "488")));
}

// A hint that fits: rows with a 1 in the place of the class are one cause of two dimensions.
TEST_F(NpyDataset, LabelsInSeveralColumnsAreToldHowToBecomeOne) {
  for (const char* shape : {"(4, 3)", "(4, 10)"}) {
    std::string header =
        std::string("{'descr': '|u1', 'fortran_order': False, 'shape': ") + shape + ", }";
    header.resize(117, ' ');
    header += '\n';
    write_file(dir_.path("images.npy"), npy_sample("images_nhw"));
    write_file(dir_.path("labels.npy"), std::string("\x93NUMPY\x01\0\x76\0", 10) + header +
                                            std::string(shape[4] == '3' ? 12 : 40, '\0'));
    EXPECT_THAT(open(), FailsWith(Code::kBadData, Names("labels.npy"), Says(shape),
                                  Advises("one-hot", "argmax(1)", "a[:, 0]")));
  }
}

TEST_F(NpyDataset, HostileShapesAreRefusedBeforeAnythingIsRead) {
  const auto shape_of = [](std::vector<uint64_t> dims) {
    NpyHeader header{'u', 1, std::move(dims), 128, 1};
    for (const uint64_t dim : header.dims) header.content_bytes *= dim;
    return npy_image_shape(header, "npy").status().message();
  };
  EXPECT_THAT(shape_of({0, 5, 5}), Says("no sample"));
  EXPECT_THAT(shape_of({5, 0, 5}), Says("size 0"));
  EXPECT_THAT(shape_of({1, uint64_t{1} << 20, uint64_t{1} << 20}), Says("limit"));
}

TEST_F(NpyDataset, AnArrayOfOneDimensionIsTokens) {
  put("edu_train_000001.npy", "tokens_uint16");
  put("edu_val_000000.npy", "tokens_uint16");
  for (const char* format : {"auto", "npy", "tokens"}) {
    const auto dataset = open(format);
    ASSERT_TRUE(dataset.is_ok()) << dataset.status().message();
    EXPECT_EQ((*dataset)->format(), "tokens");
    EXPECT_EQ((*dataset)->samples(), 2U);
    EXPECT_EQ((*dataset)->classes(), 111U);
    EXPECT_EQ(stored_sample(**dataset, 1)[0], 104);
    EXPECT_EQ((*open(format, Split::kEval))->files().size(), 1U);
  }
  // The same tokens, whatever is before them.
  const std::string file = npy_sample("tokens_uint16");
  const TemporaryDirectory other;
  write_file(other.path("same.bin"), file.substr(file.size() - 22));
  const auto bare = open_dataset(spec_of(other.path("same.bin")), Split::kTrain, "", {}, {4, 0});
  EXPECT_EQ((*bare)->fingerprint(), (*open())->fingerprint());
}

TEST_F(NpyDataset, TokensOfOtherTypesAreTakenOrRefusedByName) {
  const auto opened = [&](const std::string& sample) {
    put("x.npy", sample);
    return open_dataset(spec_of(dir_.path("x.npy")), Split::kTrain, "", {}, {4, 0});
  };
  EXPECT_EQ((*opened("tokens_uint32_version_2"))->shape().token_bytes, 4U);
  EXPECT_EQ((*opened("tokens_int32_version_3"))->classes(), 111U);
  EXPECT_THAT(opened("tokens_negative").status().message(),
              AllOf(Names("x.npy", "offset 136"), Says("token -7"), Says("vocab")));
  EXPECT_THAT(opened("tokens_int64").status().message(),
              AllOf(Names("x.npy"), Says("int64"), HasSubstr("a.astype(\"uint32\")")));
  EXPECT_THAT(opened("big_endian").status().message(), AllOf(Names("x.npy"), Says("big-endian")));
  EXPECT_THAT(opened("scalar").status().message(), HasSubstr("one dimension"));
  EXPECT_THAT(opened("images_nhw").status().message(), Says("not a directory"));
}

}  // namespace
}  // namespace lockstep::data
