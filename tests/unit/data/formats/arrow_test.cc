#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "data/dataset/dataset.h"
#include "data/formats/arrow/arrow_file.h"
#include "data/loader/sample_reader.h"
#include "data/loader/verify.h"
#include "data/open/detect_format.h"
#include "data/open/inspect.h"
#include "data/open/open_dataset.h"
#include "tests/support/fails_with.h"
#include "tests/support/files.h"
#include "tests/support/idx_writer.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/data/samples/arrow_samples.h"
#include "tests/unit/data/support/samples_of.h"
#include "tests/unit/data/support/shard_checks.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class ArrowFiles : public testing::Test {
 protected:
  std::string put(const std::string& sample, const std::string& name = "x.arrow") {
    std::string path = dir_.path(name);
    fs::create_directories(fs::path(path).parent_path());
    write_file(path, arrow_sample(sample));
    return path;
  }
  Result<std::unique_ptr<Dataset>> open(const std::string& path, Split split = Split::kTrain) {
    const auto format = resolve_format(path, "auto");
    SampleCut cut{.block = 4, .vocab = 0};
    if (format.is_ok() && *format == "arrow_images") cut.frame = {CropKind::kRandomResized, 4, 0};
    return open_dataset(spec_of(path), split, cache_.path(), {}, cut);
  }
  std::string failure(const std::string& sample) {
    const auto dataset = open(put(sample));
    return dataset.is_ok() ? "no failure" : dataset.status().message();
  }
  TemporaryDirectory dir_;
  TemporaryDirectory cache_;
};

std::vector<SeenSample> encoded_samples(const Dataset& dataset) {
  std::vector<SeenSample> seen;
  for (uint64_t i = 0; i < dataset.samples(); ++i) {
    std::vector<uint8_t> bytes;
    const Status status = read_encoded(dataset, i, bytes);
    EXPECT_TRUE(status.is_ok()) << status.message();
    seen.push_back({{bytes.begin(), bytes.end()}, label_of(dataset, i)});
  }
  return seen;
}

std::vector<SeenSample> pictures() {
  return {{arrow_sample("red_file"), 2},
          {arrow_sample("green_file"), 0},
          {arrow_sample("blue_file"), 7},
          {arrow_sample("grey_file"), 1}};
}

TEST_F(ArrowFiles, ImagesAreReadSampleBySampleWhateverTheyWereWrittenAs) {
  for (const char* sample :
       {"encoded", "encoded_large", "encoded_stream", "hugging_face", "dictionary_beside"}) {
    const std::string path = put(sample);
    EXPECT_EQ(*detect_format(path), "arrow_images");
    const auto dataset = open(path);
    ASSERT_TRUE(dataset.is_ok()) << sample << ": " << dataset.status().message();
    EXPECT_EQ(encoded_samples(**dataset), pictures()) << sample;
    EXPECT_THAT((*dataset)->name_of(0), Names("x.arrow", "at byte")) << "read in place";
  }
}

TEST_F(ArrowFiles, CompressedImagesAreInflatedOnceIntoTheCache) {
  for (const char* sample :
       {"encoded_lz4", "encoded_zstd", "encoded_feather", "hugging_face_zstd"}) {
    const std::string name = std::string(sample) + "/x.arrow";
    put(sample, name);
    std::string fingerprint;
    for (int again = 0; again < 2; ++again) {
      const auto dataset = open(dir_.path(sample));
      ASSERT_TRUE(dataset.is_ok()) << sample << ": " << dataset.status().message();
      EXPECT_EQ(encoded_samples(**dataset), pictures()) << sample;
      EXPECT_THAT((*dataset)->name_of(0), HasSubstr(dir_.path(name) + " (inflated) at byte "));
      if (again > 0) {
        EXPECT_EQ((*dataset)->fingerprint(), fingerprint);
      }
      fingerprint = (*dataset)->fingerprint();
    }
    // Wherever it lies.
    fs::rename(dir_.path(sample), dir_.path("moved"));
    EXPECT_EQ((*open(dir_.path("moved")))->fingerprint(), fingerprint);
    fs::remove_all(dir_.path("moved"));
  }
  const auto verified = verify_data(spec_of(put("encoded_lz4")), cache_.path(), 1, {}, SampleCut());
  ASSERT_TRUE(verified.is_ok()) << verified.status().message();
  EXPECT_EQ(verified->front().samples, 4U);
  EXPECT_EQ(verified->front().damaged, 0U);
}

// Hugging Face writes a table whose images are separate files so: `bytes` is null, `path` is not.
TEST_F(ArrowFiles, ImagesThatAreOnlyNamedAreToldHowToBecomeBytes) {
  const std::string path = put("hugging_face");
  std::string file = slurp(path);
  const auto node = [](uint64_t nulls) {  // rows and nulls of a column
    std::string bytes(16, '\0');
    bytes[0] = 4;
    bytes[8] = static_cast<char>(nulls);
    return bytes;
  };
  const std::string columns = node(0) + node(0) + node(0) + node(0);  // image, bytes, path, label
  const size_t at = file.find(columns);
  ASSERT_NE(at, std::string::npos);
  for (const uint64_t nulls : {1, 4}) {
    write_file(path, file.replace(at + 16, 16, node(nulls)));
    EXPECT_THAT(open(path), FailsWith(Code::kBadData, Names("x.arrow", "column image"),
                                      Says(std::to_string(nulls) + " rows", "path"),
                                      Advises("embed_table_storage", "name the directory")));
  }
}

TEST_F(ArrowFiles, NamesOfClassesAreThoseOfHuggingFacesMetadata) {
  const auto dataset = open(put("hugging_face"));
  ASSERT_TRUE(dataset.is_ok()) << dataset.status().message();
  EXPECT_EQ((*dataset)->classes(), 9U) << "also those of which there is no sample";
  ASSERT_EQ((*dataset)->class_names().size(), 9U);
  EXPECT_EQ((*dataset)->class_names()[7], "class 7");
  EXPECT_EQ((*open(put("encoded", "y.arrow")))->class_names().size(), 0U);
}

void expect_counting(const Dataset& dataset, size_t elements) {
  ASSERT_EQ(dataset.samples(), 4U);
  const uint32_t labels[] = {3, 0, 2, 1};
  for (uint64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(label_of(dataset, i), labels[i]);
    for (size_t k = 0; k < elements; ++k)
      ASSERT_EQ(stored_sample(dataset, i)[k], (i * elements + k) % 256);
  }
}

TEST_F(ArrowFiles, PixelsAreReadInPlaceWithTheShapeThatIsSaid) {
  const SampleShape last{3, 3, 5, 0, 0, true};
  const SampleShape first{3, 5, 3};
  const SampleShape grey{1, 5, 6};
  const std::pair<const char*, SampleShape> all[] = {{"tensor_hwc", last},
                                                     {"tensor_chw", first},
                                                     {"tensor_grey", grey},
                                                     {"nested", grey},
                                                     {"fixed_binary", grey}};
  for (const auto& [sample, shape] : all) {
    const std::string path = put(sample);
    EXPECT_EQ(*detect_format(path), "arrow");
    const auto dataset = open(path);
    ASSERT_TRUE(dataset.is_ok()) << sample << ": " << dataset.status().message();
    EXPECT_EQ((*dataset)->shape(), shape) << sample;
    expect_counting(**dataset, shape.elements());
    EXPECT_THAT((*dataset)->name_of(3), Names("x.arrow", "at byte"));
  }
}

TEST_F(ArrowFiles, CompressedPixelsAreTheSameData) {
  const auto plain = open(put("tensor_grey"));
  const auto packed = open(put("tensor_grey_zstd", "y.arrow"));
  ASSERT_TRUE(packed.is_ok()) << packed.status().message();
  expect_counting(**packed, 30);
  EXPECT_EQ((*packed)->fingerprint(), (*plain)->fingerprint());
  EXPECT_THAT((*packed)->name_of(0), Names("y.arrow (inflated)", "at byte"));
}

std::vector<int64_t> all_tokens(const Dataset& dataset) {
  const auto reader = SampleReader::create(dataset, {}, {});
  std::vector<int64_t> tokens;
  std::vector<int64_t> inputs(dataset.shape().tokens);
  std::vector<int64_t> labels(dataset.shape().tokens);
  for (uint64_t i = 0; i < dataset.samples(); ++i) {
    const Status status =
        reader->read(i, reinterpret_cast<std::byte*>(inputs.data()), labels.data());
    EXPECT_TRUE(status.is_ok()) << status.message();
    EXPECT_TRUE(dataset.unchanged(std::span(&i, 1)).is_ok());
    tokens.insert(tokens.end(), inputs.begin(), inputs.end());
    EXPECT_EQ(labels.back(), inputs.back() + 1) << "of a sequence that counts";
  }
  return tokens;
}

TEST_F(ArrowFiles, TokensAreOneStreamWhateverTheBatches) {
  for (const char* sample : {"list_uint16", "list_int32_batches", "large_list_int64",
                             "fixed_list_uint32", "flat_uint16", "flat_uint16_lz4"}) {
    const std::string path = put(sample);
    EXPECT_EQ(*detect_format(path), "arrow_tokens");
    const auto dataset = open(path);
    ASSERT_TRUE(dataset.is_ok()) << sample << ": " << dataset.status().message();
    EXPECT_THAT(all_tokens(**dataset), ElementsAre(100, 101, 102, 103, 104, 105, 106, 107))
        << sample;
    EXPECT_EQ((*dataset)->classes(), 110U);
  }
}

TEST_F(ArrowFiles, TheSameTokensHaveTheSameFingerprintElsewhere) {
  std::vector<uint16_t> tokens(10);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<uint16_t>(100 + i);
  write_file(dir_.path("x.bin"), {reinterpret_cast<const char*>(tokens.data()), 2 * tokens.size()});
  const std::string wanted = (*open(dir_.path("x.bin")))->fingerprint();
  for (const char* sample : {"list_uint16", "flat_uint16", "flat_uint16_lz4"})
    EXPECT_EQ((*open(put(sample)))->fingerprint(), wanted) << sample;
}

TEST_F(ArrowFiles, BytesAsTokensHaveTheVocabularyOfText) {
  const auto dataset = open(put("text_bytes"));
  ASSERT_TRUE(dataset.is_ok()) << dataset.status().message();
  EXPECT_EQ((*dataset)->classes(), 256U);
}

TEST_F(ArrowFiles, SplitsAreDirectoriesOrNames) {
  put("tensor_grey", "train/a.arrow");
  put("tensor_grey", "train/b.arrow");
  put("nested", "val/a.arrow");
  EXPECT_EQ(*detect_format(dir_.path()), "arrow");
  EXPECT_TRUE(has_eval_files(dir_.path()));
  EXPECT_EQ((*open(dir_.path()))->samples(), 8U);
  EXPECT_EQ((*open(dir_.path(), Split::kEval))->samples(), 4U);
  const auto seen = inspect_data(spec_of(dir_.path()), cache_.path());
  ASSERT_TRUE(seen.is_ok()) << seen.status().message();
  EXPECT_EQ(seen->splits.size(), 2U);
  TemporaryDirectory names;
  for (const char* name : {"train-0.feather", "validation-0.ipc"})
    write_file(names.path(name), arrow_sample("flat_uint16"));
  EXPECT_EQ(*detect_format(names.path()), "arrow_tokens");
  EXPECT_TRUE(has_eval_files(names.path()));
  EXPECT_THAT((*open(names.path(), Split::kEval))->files(),
              ElementsAre(names.path("validation-0.ipc")));
}

TEST_F(ArrowFiles, AFileOfAnotherNameIsKnownByItsFirstBytes) {
  EXPECT_EQ(*detect_format(put("encoded", "data-00000")), "arrow_images");
}

TEST_F(ArrowFiles, WhatIsWrongIsSaidWithFileAndColumn) {
  const std::pair<const char*, const char*> said[] = {
      {"null_label", "has 1 rows without a value in column label"},
      {"null_image", "has 1 rows without a value in column image"},
      {"negative_label", "has row 1, which has label -3, but a label is"},
      {"dictionary_label", "has column label dictionary-encoded"},
      {"no_label", "set data.label to the column of the labels; it has image (binary)"},
      {"encoded_view", "it has image (binary_view), name (string), label (int64)"},
      {"text_only", "has no column that Lockstep can train on"},
      {"no_image", "has row 0, which has an image that "},
      {"tensor_open", "3 x 5 x 3, a shape that does not tell the axis of the channels"},
      {"shapeless", "does not tell the shape of the images in column image (fixed_size_list[30]"},
      {"no_batches", "has 0 tokens"},
      {"negative_token", "has token -3 at offset "},
      {"deep", "has more than 16 columns within columns"},
      {"bomb", "claims to inflate to more than 1000 times its size"},
  };
  for (const auto& [sample, words] : said)
    EXPECT_THAT(failure(sample), AllOf(HasSubstr("x.arrow "), HasSubstr(words))) << sample;
}

TEST_F(ArrowFiles, OneFileOfAnotherKindIsRefused) {
  put("tensor_grey", "a.arrow");
  put("encoded", "b.arrow");
  EXPECT_THAT(open(dir_.path()).status().message(),
              AllOf(Names("b.arrow"), Says("arrow_images", "not arrow")));
  put("tensor_chw", "b.arrow");
  EXPECT_THAT(open(dir_.path()).status().message(), AllOf(Names("b.arrow"), Says("shape")));
}

TEST_F(ArrowFiles, AFileThatChangesIsTold) {
  const auto dataset = open(put("list_int32_batches"));
  const uint64_t first = 0;
  EXPECT_TRUE((*dataset)->unchanged(std::span(&first, 1)).is_ok());
  fs::resize_file(dir_.path("x.arrow"), 100);
  EXPECT_THAT((*dataset)->unchanged(std::span(&first, 1)).message(), HasSubstr("x.arrow"));
}

}  // namespace
}  // namespace lockstep::data
