#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "data/formats/arrays/cifar_files.h"
#include "data/open/detect_format.h"
#include "data/open/inspect.h"
#include "data/open/open_dataset.h"
#include "tests/support/fails_with.h"
#include "tests/support/files.h"
#include "tests/support/idx_writer.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/data/support/samples_of.h"

namespace lockstep::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr size_t kPixels = 3072;

// A record: labels, then red, green and blue planes, each of one value and its place in a corner.
std::string cifar_record(const std::string& labels, uint8_t red) {
  std::string record = labels;
  for (int channel = 0; channel < 3; ++channel) {
    std::string plane(1024, static_cast<char>(red + channel));
    plane[33] = static_cast<char>(200 + channel);  // row 1, column 1
    record += plane;
  }
  return record;
}

class CifarDataset : public testing::Test {
 protected:
  // Batch b (0: for evaluation) has 2 records, of the labels b and 9.
  void put_cifar10(const std::string& directory = "") {
    for (int batch = 0; batch <= 5; ++batch) {
      const auto value = static_cast<uint8_t>(10 * batch);
      write_file(dir_.path(directory + name_of(batch)),
                 cifar_record({static_cast<char>(batch)}, value) +
                     cifar_record({9}, static_cast<uint8_t>(value + 5)));
    }
  }
  void put_cifar100(const std::string& directory = "") {
    write_file(dir_.path(directory + "train.bin"),
               cifar_record({19, 99}, 1) + cifar_record({0, 7}, 2));
    write_file(dir_.path(directory + "test.bin"), cifar_record({3, 41}, 3));
  }
  static std::string name_of(int batch) {
    return batch == 0 ? "test_batch.bin" : "data_batch_" + std::to_string(batch) + ".bin";
  }
  Result<std::unique_ptr<Dataset>> open(const std::string& format = "auto",
                                        Split split = Split::kTrain) {
    return open_dataset(spec_of(dir_.path(), format), split, dir_.path("cache"));
  }
  std::string error(Code code, Split split = Split::kTrain) {
    const auto dataset = open("auto", split);
    EXPECT_EQ(dataset.status().code(), code) << dataset.status().message();
    return dataset.status().message();
  }

  TemporaryDirectory dir_;
};

TEST_F(CifarDataset, TheFiveBatchesAreOneDataset) {
  put_cifar10();
  write_file(dir_.path("batches.meta.txt"), "airplane\n");
  write_file(dir_.path("readme.html"), "<html>");
  const auto dataset = open();
  ASSERT_TRUE(dataset.is_ok()) << dataset.status().message();
  EXPECT_EQ((*dataset)->format(), "cifar10");
  EXPECT_EQ((*dataset)->samples(), 10U);
  EXPECT_EQ((*dataset)->shape(), (SampleShape{3, 32, 32}));
  EXPECT_EQ((*dataset)->classes(), 10U);
  EXPECT_EQ((*dataset)->files().size(), 5U);
  for (uint64_t i = 0; i < 10; ++i) {
    EXPECT_EQ(label_of(**dataset, i), i % 2 == 0 ? i / 2 + 1 : 9);
    const uint8_t* sample = stored_sample(**dataset, i);
    const uint64_t red = 10 * (i / 2 + 1) + 5 * (i % 2);
    for (uint64_t channel = 0; channel < 3; ++channel) {
      EXPECT_EQ(sample[1024 * channel], red + channel);
      EXPECT_EQ(sample[1024 * channel + 33], 200 + channel);
      EXPECT_EQ(sample[1024 * channel + 1023], red + channel);
    }
  }
  // (10 + 15 + ... + 55) / 10 of 1,023 places, and 200 of one.
  EXPECT_NEAR((*dataset)->statistics()[0].mean, (32.5 * 1023 + 200) / 1024 / 255, 1e-12);
  const auto eval = open("cifar10", Split::kEval);
  ASSERT_TRUE(eval.is_ok()) << eval.status().message();
  EXPECT_EQ((*eval)->samples(), 2U);
  EXPECT_EQ(label_of(**eval, 0), 0U);
}

TEST_F(CifarDataset, TheFineLabelOfCifar100IsTheLabel) {
  put_cifar100();
  const auto dataset = open();
  ASSERT_TRUE(dataset.is_ok()) << dataset.status().message();
  EXPECT_EQ((*dataset)->format(), "cifar100");
  EXPECT_EQ((*dataset)->classes(), 100U);
  EXPECT_EQ((*dataset)->samples(), 2U);
  EXPECT_EQ(label_of(**dataset, 0), 99U);
  EXPECT_EQ(label_of(**dataset, 1), 7U);
  EXPECT_EQ(stored_sample(**dataset, 1)[0], 2);
  EXPECT_EQ(stored_sample(**dataset, 1)[kPixels - 1], 4);
  EXPECT_EQ(label_of(**open("auto", Split::kEval), 0), 41U);
}

TEST_F(CifarDataset, AJobMayNameTheCoarseLabelOfCifar100) {
  put_cifar100();
  const auto open_by = [&](const std::string& label, Split split = Split::kTrain) {
    SampleCut cut;
    cut.columns.label = label;
    return open_dataset(spec_of(dir_.path()), split, dir_.path("cache"), {}, cut);
  };
  const auto fine = open();
  EXPECT_EQ((*fine)->notes().columns.label, "fine_label");
  for (const char* name : {"coarse_label", "coarse_labels"}) {
    const auto coarse = open_by(name);
    ASSERT_TRUE(coarse.is_ok()) << coarse.status().message();
    EXPECT_EQ((*coarse)->classes(), 20U);
    EXPECT_EQ(label_of(**coarse, 0), 19U);
    EXPECT_EQ(label_of(**coarse, 1), 0U);
    EXPECT_EQ(stored_sample(**coarse, 1)[0], 2) << "the same pixels";
    EXPECT_EQ((*coarse)->notes().columns.label, "coarse_label");
    EXPECT_NE((*coarse)->fingerprint(), (*fine)->fingerprint());
    EXPECT_EQ(label_of(**open_by(name, Split::kEval), 0), 3U);
  }
  EXPECT_EQ((*open_by("fine_labels"))->fingerprint(), (*fine)->fingerprint());
  EXPECT_THAT(open_by("colour"),
              FailsWith(Code::kUsage, Names("colour"), Advises("fine_label", "coarse_label")));
}

TEST_F(CifarDataset, OtherFormatsOfPixelsHaveNoColumnToName) {
  put_cifar10();
  SampleCut cut;
  cut.columns.label = "coarse_label";
  EXPECT_THAT(open_dataset(spec_of(dir_.path()), Split::kTrain, "", {}, cut),
              FailsWith(Code::kUsage, Names("cifar10"), Advises("leave data.label out")));
}

TEST_F(CifarDataset, IsFoundBelowTheDirectoryToWhichTheArchiveWasUnpacked) {
  std::filesystem::create_directory(dir_.path("cifar-10-batches-bin"));
  put_cifar10("cifar-10-batches-bin/");
  write_file(dir_.path("notes.txt"), "from the web");
  for (const char* format : {"auto", "cifar10"}) {
    const auto dataset = open(format);
    ASSERT_TRUE(dataset.is_ok()) << dataset.status().message();
    EXPECT_THAT((*dataset)->files()[0], HasSubstr("/cifar-10-batches-bin/data_batch_1.bin"));
  }
  EXPECT_TRUE(has_eval_files(dir_.path()));
  std::filesystem::create_directory(dir_.path("cifar-100-binary"));
  put_cifar100("cifar-100-binary/");
  EXPECT_THAT(error(Code::kUsage), AllOf(Says("both"), Advises("data.train.format")));
  EXPECT_EQ((*open("cifar100"))->classes(), 100U);
}

TEST_F(CifarDataset, AMissingBatchIsNamed) {
  put_cifar10();
  std::filesystem::remove(dir_.path("data_batch_3.bin"));
  EXPECT_THAT(error(Code::kNoInput),
              AllOf(Names("data_batch_3.bin"), Advises("cifar-10-binary.tar.gz")));
  std::filesystem::remove(dir_.path("test_batch.bin"));
  EXPECT_THAT(error(Code::kNoInput, Split::kEval), Names("test_batch.bin"));
  EXPECT_FALSE(has_eval_files(dir_.path()));
}

TEST_F(CifarDataset, TrainingDataAloneCanBeInspected) {
  put_cifar10();
  std::filesystem::remove(dir_.path("test_batch.bin"));
  const auto seen = inspect_data(spec_of(dir_.path()), "");
  ASSERT_TRUE(seen.is_ok()) << seen.status().message();
  EXPECT_EQ(seen->splits.size(), 1U);
  EXPECT_EQ(seen->splits[0].split, "train");
  EXPECT_EQ(seen->splits[0].class_counts[9], 5U);
  EXPECT_EQ(seen->splits[0].class_counts[0], 0U);
}

TEST_F(CifarDataset, DamageIsToldWithFileAndSampleAndWhatToDo) {
  put_cifar10();
  const std::string good = slurp(dir_.path("data_batch_2.bin"));
  write_file(dir_.path("data_batch_2.bin"), good.substr(0, 5000));
  EXPECT_THAT(error(Code::kBadData),
              AllOf(Names(dir_.path("data_batch_2.bin")), Says("truncated", "5000 bytes", "3073"),
                    Advises("unpack")));
  write_file(dir_.path("data_batch_2.bin"), "");
  EXPECT_THAT(error(Code::kBadData), AllOf(Names("data_batch_2.bin"), Says("empty")));
  std::string damaged = good;
  damaged[3073] = 10;
  write_file(dir_.path("data_batch_2.bin"), damaged);
  EXPECT_THAT(error(Code::kBadData), AllOf(Names("data_batch_2.bin", "sample 1"),
                                           Says("label 10", "0 to 9"), Advises("unpack")));
}

TEST_F(CifarDataset, ALabelOfCifar100BeyondItsClassesIsRefused) {
  put_cifar100();
  write_file(dir_.path("test.bin"), cifar_record({3, 100}, 3));
  EXPECT_THAT(error(Code::kBadData, Split::kEval),
              AllOf(Names("test.bin", "sample 0"), Says("label 100", "0 to 99")));
  // Cut off, the file could hold tokens, if the names of the classes did not lie next to it.
  write_file(dir_.path("test.bin"), "too short");
  EXPECT_EQ(*detect_format(dir_.path()), "tokens");
  write_file(dir_.path("fine_label_names.txt"), "apple\n");
  EXPECT_THAT(error(Code::kBadData, Split::kEval), AllOf(Names("test.bin"), Says("truncated")));
}

TEST_F(CifarDataset, TheFingerprintIsOfWhatTheFilesHold) {
  put_cifar10();
  const std::string before = (*open())->fingerprint();
  EXPECT_EQ((*open("cifar10"))->fingerprint(), before);
  const TemporaryDirectory copy;
  std::filesystem::copy(dir_.path(), copy.path(), std::filesystem::copy_options::recursive);
  EXPECT_EQ((*open_dataset(spec_of(copy.path()), Split::kTrain, ""))->fingerprint(), before);
  std::string other = slurp(dir_.path("data_batch_5.bin"));
  other.back() ^= 1;
  write_file(dir_.path("data_batch_5.bin"), other);
  EXPECT_NE((*open())->fingerprint(), before);
}

TEST_F(CifarDataset, NanoGptsTokensOfTheSameNameAreTokens) {
  put_cifar100();
  std::filesystem::rename(dir_.path("test.bin"), dir_.path("val.bin"));
  EXPECT_EQ(*detect_format(dir_.path()), "tokens");
}

}  // namespace
}  // namespace lockstep::data
