#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "comm/base/descriptors.h"
#include "comm/base/file.h"
#include "data/dataset/dataset.h"
#include "data/dataset/facts.h"
#include "data/loader/sample_reader.h"
#include "data/open/open_dataset.h"
#include "tests/support/fails_with.h"
#include "tests/support/files.h"
#include "tests/support/idx_writer.h"
#include "tests/support/temporary_directory.h"

namespace lockstep::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

template <typename T>
std::string bytes_of_tokens(const std::vector<T>& tokens) {
  return {reinterpret_cast<const char*>(tokens.data()), tokens.size() * sizeof(T)};
}

// 256 numbers of four bytes.
std::string llmc_header(uint32_t magic, uint32_t version, uint32_t tokens) {
  std::vector<uint32_t> header(256);
  header[0] = magic;
  header[1] = version;
  header[2] = tokens;
  return bytes_of_tokens(header);
}

std::string counting_tokens(uint32_t tokens) {
  std::vector<uint16_t> out(tokens);
  for (uint32_t i = 0; i < tokens; ++i) out[i] = static_cast<uint16_t>(100 + i);
  return bytes_of_tokens(out);
}

class TokenDataset : public ::testing::Test {
 protected:
  Result<std::unique_ptr<Dataset>> open(const std::string& name, const SampleCut& cut = {4, 0},
                                        const std::string& format = "auto",
                                        Split split = Split::kTrain) {
    return open_dataset(spec_of(dir_.path(name), format), split, dir_.path("cache"), {}, cut);
  }
  Result<std::unique_ptr<Dataset>> open_bytes(const std::string& bytes,
                                              const SampleCut& cut = {4, 0},
                                              const std::string& format = "auto") {
    write_file(dir_.path("x.bin"), bytes);
    return open("x.bin", cut, format);
  }
  std::string error_of(const std::string& bytes, const SampleCut& cut = {4, 0},
                       const std::string& format = "auto") {
    const auto dataset = open_bytes(bytes, cut, format);
    EXPECT_EQ(dataset.status().code(), Code::kBadData) << dataset.status().message();
    EXPECT_THAT(dataset.status().message(), HasSubstr(dir_.path("x.bin")));
    return dataset.status().message();
  }

  TemporaryDirectory dir_;
};

struct Read {
  std::vector<int64_t> inputs;
  std::vector<int64_t> labels;
};

Read read_all(const Dataset& dataset) {
  const auto reader = SampleReader::create(dataset, {}, {});
  Read read;
  read.inputs.resize(dataset.samples() * dataset.shape().elements());
  read.labels.resize(dataset.samples() * dataset.shape().labels());
  const Status status = reader.value().read_range(
      0, dataset.samples(), reinterpret_cast<std::byte*>(read.inputs.data()), read.labels.data());
  EXPECT_TRUE(status.is_ok()) << status.message();
  return read;
}

TEST_F(TokenDataset, EveryTokenButTheFirstAndTheRestIsALabelOnce) {
  const auto dataset = open_bytes(counting_tokens(11));
  ASSERT_TRUE(dataset.is_ok()) << dataset.status().message();
  EXPECT_EQ((*dataset)->samples(), 2U);
  EXPECT_EQ((*dataset)->classes(), 111U);
  EXPECT_EQ((*dataset)->format(), "tokens");
  EXPECT_TRUE((*dataset)->statistics().empty());
  const Read read = read_all(**dataset);
  EXPECT_THAT(read.inputs, ElementsAre(100, 101, 102, 103, 104, 105, 106, 107));
  EXPECT_THAT(read.labels, ElementsAre(101, 102, 103, 104, 105, 106, 107, 108));
}

TEST_F(TokenDataset, HeadersSayHowLongATokenIs) {
  const auto two = open_bytes(llmc_header(20240520, 1, 5) + counting_tokens(5));
  ASSERT_TRUE(two.is_ok()) << two.status().message();
  EXPECT_EQ(read_all(**two).labels, (std::vector<int64_t>{101, 102, 103, 104}));
  const std::vector<uint32_t> large = {1, 70'000, 3, 4, 128'255};
  const auto four = open_bytes(llmc_header(20240801, 7, 5) + bytes_of_tokens(large));
  ASSERT_TRUE(four.is_ok()) << four.status().message();
  EXPECT_EQ(read_all(**four).labels, (std::vector<int64_t>{70'000, 3, 4, 128'255}));
  EXPECT_EQ((*four)->classes(), 128'256U);
  const auto bare = open_bytes(bytes_of_tokens(large), {4, 0}, "tokens_u32");
  ASSERT_TRUE(bare.is_ok()) << bare.status().message();
  EXPECT_EQ((*bare)->fingerprint(), (*four)->fingerprint());  // of the tokens, not of the header
}

TEST_F(TokenDataset, TextIsBytes) {
  write_file(dir_.path("a.txt"), "\xffgo on");
  const auto dataset = open("a.txt");
  ASSERT_TRUE(dataset.is_ok()) << dataset.status().message();
  EXPECT_EQ((*dataset)->format(), "text");
  EXPECT_EQ((*dataset)->classes(), 256U);
  EXPECT_EQ(read_all(**dataset).inputs, (std::vector<int64_t>{255, 'g', 'o', ' '}));
}

TEST_F(TokenDataset, FilesOfADirectoryFollowEachOtherByNameAndSplit) {
  std::filesystem::create_directory(dir_.path("d"));
  write_file(dir_.path("d/b_train_2.bin"), counting_tokens(6));
  write_file(dir_.path("d/b_train_1.bin"), counting_tokens(11));
  write_file(dir_.path("d/b_val_1.bin"), counting_tokens(5));
  write_file(dir_.path("d/notes.md"), "not a token");
  const auto train = open("d");
  ASSERT_TRUE(train.is_ok()) << train.status().message();
  EXPECT_THAT((*train)->files(),
              ElementsAre(dir_.path("d/b_train_1.bin"), dir_.path("d/b_train_2.bin")));
  EXPECT_EQ((*train)->samples(), 3U);
  EXPECT_EQ(read_all(**train).inputs[8], 100);  // no sequence crosses files
  const auto eval = open("d", {4, 0}, "auto", Split::kEval);
  ASSERT_TRUE(eval.is_ok()) << eval.status().message();
  EXPECT_EQ((*eval)->samples(), 1U);
  EXPECT_TRUE(check_eval_fits_train(**train, **eval).is_ok());
  std::filesystem::remove(dir_.path("d/b_val_1.bin"));
  EXPECT_EQ(open("d", {4, 0}, "auto", Split::kEval).status().code(), Code::kNoInput);
}

TEST_F(TokenDataset, FingerprintChangesWithTokensAndCutAndNotWithNames) {
  const std::string first = (*open_bytes(counting_tokens(11)))->fingerprint();
  write_file(dir_.path("y.bin"), counting_tokens(11));
  EXPECT_EQ((*open("y.bin"))->fingerprint(), first);
  EXPECT_EQ((*open("y.bin", {4, 1000}))->fingerprint(), first);
  EXPECT_NE((*open("y.bin", {5, 0}))->fingerprint(), first);
  std::string other = counting_tokens(11);
  other[20] = 7;  // in the rest
  EXPECT_NE((*open_bytes(other))->fingerprint(), first);
}

TEST_F(TokenDataset, DamageIsToldWithFileAndPlace) {
  EXPECT_THAT(error_of(""), HasSubstr("is empty"));
  EXPECT_THAT(error_of(counting_tokens(6) + "x"),
              AllOf(HasSubstr("13 bytes"), HasSubstr("offset 12")));
  EXPECT_THAT(error_of(counting_tokens(4)), AllOf(HasSubstr("4 tokens"), HasSubstr("need 5")));
  EXPECT_THAT(error_of(llmc_header(20240520, 1, 6) + counting_tokens(5)),
              HasSubstr("is truncated"));
  EXPECT_THAT(error_of(llmc_header(20240520, 1, 4) + counting_tokens(5)),
              HasSubstr("promises 1032"));
  EXPECT_THAT(error_of(llmc_header(20240520, 1, 0xffffffff)), HasSubstr("is truncated"));
  EXPECT_THAT(error_of(llmc_header(20240520, 1, 6).substr(0, 1000)), HasSubstr("offset 1000"));
  EXPECT_THAT(error_of(llmc_header(20240520, 2, 5) + counting_tokens(5)), HasSubstr("version 2"));
  EXPECT_THAT(error_of(counting_tokens(6), {4, 0}, "tokens_u32"), HasSubstr("need 5"));
}

TEST_F(TokenDataset, ATokenBeyondTheVocabularyIsToldWithItsOffset) {
  EXPECT_TRUE(open_bytes(counting_tokens(6), {4, 106}).is_ok());
  EXPECT_THAT(error_of(counting_tokens(6), {4, 105}),
              AllOf(Names("offset 10"), Says("token 105"), Says("105")));
  EXPECT_THAT(error_of(llmc_header(20240520, 1, 6) + counting_tokens(6), {4, 103}),
              AllOf(Names("offset 1030"), Says("token 103")));
  const std::vector<uint32_t> wild = {1, 2, 0xffffffff, 4, 5};
  EXPECT_THAT(error_of(bytes_of_tokens(wild), {4, 0}, "tokens_u32"),
              AllOf(Names("offset 8"), Says("token 4294967295")));
}

// Reading them all takes long; whoever opens them next finds the largest token noted down.
TEST_F(TokenDataset, TheLargestTokenIsLookedUpWhereItWasKept) {
  const auto first = open_bytes(counting_tokens(6));
  ASSERT_TRUE(first.is_ok()) << first.status().message();
  const std::string kept = dir_.path("cache/tokens-" + (*first)->fingerprint() + ".txt");
  const std::string title = "lockstep tokens 1\nfingerprint " + (*first)->fingerprint() + "\n";
  EXPECT_EQ(read_file(kept, 1000).value(), title + "largest 105\n");
  write_file(kept, title + "largest 199\n");
  EXPECT_EQ((*open("x.bin"))->classes(), 200U);
  for (const std::string damaged : {"", "largest 199\n", "lockstep tokens 1\nlargest 199\n"}) {
    write_file(kept, damaged);
    EXPECT_EQ((*open("x.bin"))->classes(), 106U);
  }
  write_file(kept, title + "largest 199 \n");
  EXPECT_EQ((*open("x.bin"))->classes(), 106U);
}

// A mapped file can change at any time, and the model and the loss index with what it says. Writing
// through a mapping changes the times of the file at the first byte of a page, and again when the
// kernel has written the page to the disk.
TEST_F(TokenDataset, ATokenThatHasBecomeTooLargeIsNotHandedOut) {
  const std::string path = dir_.path("x.bin");
  write_file(path, counting_tokens(11));
  const Descriptor fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  void* mapped = ::mmap(nullptr, 22, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  ASSERT_NE(mapped, MAP_FAILED);
  auto* last_label = static_cast<volatile uint8_t*>(mapped) + 16;  // of the second sequence
  last_label[0] = last_label[0];
  const auto dataset = open("x.bin");
  ASSERT_TRUE(dataset.is_ok()) << dataset.status().message();
  const auto reader = SampleReader::create(**dataset, {}, {});
  int64_t tokens[4], labels[4];
  const auto read = [&](uint64_t i) {
    return reader->read(i, reinterpret_cast<std::byte*>(tokens), labels);
  };
  ASSERT_TRUE(read(1).is_ok());
  last_label[0] = 0xff;
  last_label[1] = 0xff;
  EXPECT_TRUE(read(0).is_ok());
  EXPECT_THAT(read(1),
              FailsWith(Code::kBadData, Names(path, "byte 8"), Says("token 65535", "111")));
  ::munmap(mapped, 22);
}

TEST_F(TokenDataset, WhatCannotBeToldFromTheFilesIsAsked) {
  write_file(dir_.path("thing"), "what is this");
  EXPECT_EQ(open("thing").status().code(), Code::kUsage);
  EXPECT_TRUE(open("thing", {4, 0}, "text").is_ok());
  EXPECT_EQ(open("none").status().code(), Code::kNoInput);
  EXPECT_EQ(open("thing", {0, 0}, "text").status().code(), Code::kUsage);
  write_file(dir_.path("header"), llmc_header(20240520, 1, 5) + counting_tokens(5));
  EXPECT_TRUE(open("header").is_ok());
}

TEST_F(TokenDataset, ANoteBesideImagesDoesNotMakeThemText) {
  std::filesystem::create_directory(dir_.path("d"));
  write_file(dir_.path("d/train-images-idx3-ubyte"), some_images(20, 3, 4));
  write_file(dir_.path("d/train-labels-idx1-ubyte"), some_labels(20, 3));
  write_file(dir_.path("d/README.txt"), "handwritten digits");
  EXPECT_EQ((*open("d"))->format(), "idx");
}

TEST_F(TokenDataset, AManifestOfTheFilesIsNoText) {
  std::filesystem::create_directory(dir_.path("d"));
  write_file(dir_.path("d/a.txt"), "to be or not to be, that is the question");
  write_file(dir_.path("d/val.txt"), "whether 'tis nobler");
  const auto look = [&](const SampleCut& cut) {
    auto train = open("d", cut);
    EXPECT_TRUE(train.is_ok()) << train.status().message();
    return std::pair((*train)->samples(), (*train)->fingerprint());
  };
  SampleCut documents{.block = 4};
  documents.documents = Documents::kPad;
  const auto before = look({4, 0});
  const auto padded = look(documents);
  write_file(dir_.path("d/manifest.txt"), "./a.txt\n./manifest.txt\n./val.txt\n");
  EXPECT_EQ(look({4, 0}), before);
  EXPECT_EQ(look(documents), padded);
  EXPECT_TRUE(open("d/manifest.txt").is_ok()) << "by its name it is a text like any other";
}

TEST_F(TokenDataset, TransformsAreForImages) {
  const auto dataset = open_bytes(counting_tokens(11));
  EXPECT_EQ(SampleReader::create(**dataset, {"normalize"}, {}).status().code(), Code::kUsage);
}

TEST_F(TokenDataset, EvaluationWithATokenThatTrainingNeverShowsAsksForTheVocabulary) {
  write_file(dir_.path("y.bin"), counting_tokens(12));
  const auto train = open_bytes(counting_tokens(11));
  const auto eval = open("y.bin");
  const Status status = check_eval_fits_train(**train, **eval);
  EXPECT_THAT(status, FailsWith(Code::kBadData, HasSubstr("model.vocab")));
  EXPECT_EQ(check_eval_fits_train(**train, **open("y.bin", {3, 0})).code(), Code::kBadData);
}

}  // namespace
}  // namespace lockstep::data
