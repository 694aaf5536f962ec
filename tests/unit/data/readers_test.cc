// Every format by every reader, little and far ahead: the same batches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>

#include "data/index/dataset.h"
#include "data/read/loader.h"
#include "tests/unit/data/arrow_samples.h"
#include "tests/unit/data/idx_writer.h"
#include "tests/unit/data/image_writer.h"
#include "tests/unit/data/mds_samples.h"
#include "tests/unit/data/npy_samples.h"
#include "tests/unit/data/npz_samples.h"
#include "tests/unit/data/safetensors_samples.h"
#include "tests/unit/data/tar_writer.h"
#include "tests/unit/data/tfrecord_samples.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// What a format's files are, and how they are opened.
struct Format {
  std::function<void(const std::string& dir)> put;
  SampleCut cut;
};

void put_pictures(const std::string& dir) {
  for (uint32_t i = 0; i < 24; ++i) {
    const std::string below = dir + "/" + std::string(1, static_cast<char>('a' + i % 3));
    fs::create_directories(below);
    write_file(below + "/" + std::to_string(i) + ".jpg", jpeg_picture(300 + i, 400 - i, i));
  }
}

void put_tars(const std::string& dir) {
  for (uint32_t shard = 0; shard < 3; ++shard) {
    std::string archive;
    for (uint32_t i = 0; i < 8; ++i) {
      const std::string name = std::to_string(i);
      archive += tar_entry({name + ".jpg", jpeg_picture(300 + i, 400, 8 * shard + i)});
      archive += tar_entry({name + ".cls", std::to_string(i % 3)});
    }
    write_file(dir + "/train-" + std::to_string(shard) + ".tar", archive + kTarEnd);
  }
}

void put_cifar(const std::string& dir) {
  for (int batch = 1; batch <= 5; ++batch) {
    std::string records;
    for (int i = 0; i < 9; ++i)
      records += static_cast<char>(i) + std::string(3'072, static_cast<char>(10 * batch + i));
    write_file(dir + "/data_batch_" + std::to_string(batch) + ".bin", records);
  }
}

std::function<void(const std::string& dir)> put_arrow(const std::string& sample) {
  return [sample](const std::string& dir) { write_file(dir + "/x.arrow", arrow_sample(sample)); };
}

std::string numbers(uint32_t n) {
  std::string bytes;
  for (uint32_t i = 0; i < n; ++i) bytes += {static_cast<char>(i * 7), '\0'};
  return bytes;
}

const std::map<std::string, Format>& formats() {
  constexpr ImageFrame kSmall{CropKind::kRandomResized, 16, 0};
  const SampleCut kImages{.block = 0, .vocab = 0, .frame = kSmall};
  static const std::map<std::string, Format> all{
      {"idx",
       {[](const std::string& dir) {
          // More than is read ahead: 60 of 64 KiB.
          write_file(dir + "/train-images-idx3-ubyte", some_images(60, 256, 256));
          write_file(dir + "/train-labels-idx1-ubyte", some_labels(60));
        },
        {}}},
      {"idx_gzipped",
       {[](const std::string& dir) {
          write_file(dir + "/train-images-idx3-ubyte.gz", gzip_bytes(some_images(40, 16, 16)));
          write_file(dir + "/train-labels-idx1-ubyte.gz", gzip_bytes(some_labels(40)));
        },
        {}}},
      {"cifar10", {put_cifar, {}}},
      {"npy",
       {[](const std::string& dir) {
          write_file(dir + "/images.npy", npy_sample("images_nchw"));
          write_file(dir + "/labels.npy", npy_sample("labels_uint8"));
        },
        {}}},
      {"npz",
       {[](const std::string& dir) { write_file(dir + "/mnist.npz", npz_sample("mnist")); }, {}}},
      {"idx_cut",
       {[](const std::string& dir) {
          write_file(dir + "/train-images-idx3-ubyte", some_images(30, 20, 20));
          write_file(dir + "/train-labels-idx1-ubyte", some_labels(30));
        },
        kImages}},
      {"safetensors",
       {[](const std::string& dir) {
          write_file(dir + "/x.safetensors", safetensors_sample("mnist"));
        },
        {}}},
      {"arrow", {put_arrow("tensor_hwc"), {}}},
      {"arrow_images", {put_arrow("encoded"), kImages}},
      {"arrow_tokens", {put_arrow("list_uint16"), {.block = 4, .vocab = 0, .frame = {}}}},
      // The first sequence lies in two batches.
      {"arrow_tokens_in_batches",
       {put_arrow("list_int32_batches"), {.block = 4, .vocab = 0, .frame = {}}}},
      {"tokens",
       {[](const std::string& dir) {
          write_file(dir + "/a.bin", numbers(500));
          write_file(dir + "/b.bin", numbers(300));
        },
        {.block = 7, .vocab = 0, .frame = {}}}},
      {"text",
       {[](const std::string& dir) { write_file(dir + "/a.txt", std::string(1'000, 'x') + "yz"); },
        {.block = 9, .vocab = 0, .frame = {}}}},
      {"image_folder", {put_pictures, kImages}},
      {"webdataset", {put_tars, kImages}},
      {"tfrecord",
       {[](const std::string& dir) {
          write_file(dir + "/train.tfrecord-00000-of-00001", tfrecord_sample("datasets"));
        },
        kImages}},
      {"mds",
       {[](const std::string& dir) {
          for (const auto& [name, hex] : kMdsSamples)
            if (name.starts_with("bytes/")) write_file(dir + name.substr(5), mds_sample(name));
        },
        kImages}},
  };
  return all;
}

class EveryReaderOf : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const Format& format = formats().at(GetParam());
    fs::create_directory(dir_.path("data"));
    format.put(dir_.path("data"));
    auto dataset =
        open_dataset(spec_of(dir_.path("data")), Split::kTrain, dir_.path("cache"), {}, format.cut);
    ASSERT_TRUE(dataset.is_ok()) << dataset.status().message();
    dataset_ = std::move(*dataset);
  }

  // All batches of two epochs of these slots, one after another, as bytes; or what went wrong.
  std::string read_all(Reading* reading, uint32_t threads, SlotRun slots = {0, 3}) {
    LoaderOptions options;
    options.shape = {.samples = dataset_->samples(), .global_batch = 7, .slots = 3};
    options.order = {3, dataset_->fingerprint(), dataset_->samples()};
    options.end_step = 2 * steps_per_epoch(options.shape);
    options.slots = slots;
    options.skips.add(1, 1, 2);
    options.reading = reading;
    options.threads = threads;
    options.form = ImageForm::kStored;
    options.transforms = {"flip", "normalize"};
    if (dataset_->encoded_form() != nullptr)
      options.transforms.insert(options.transforms.begin(), "random_resized_crop=16");
    if (dataset_->shape().is_sequence()) options.transforms.clear();
    const auto loader = Loader::start(*dataset_, options);
    if (!loader.is_ok()) return loader.status().message();
    std::string seen;
    while (true) {
      const auto next = (*loader)->next();
      if (!next.is_ok()) return next.status().message();
      if (*next == nullptr) return seen;
      const Batch& b = **next;
      const uint64_t elements = b.samples * b.shape.elements();
      const uint64_t bytes = b.shape.is_sequence() ? elements * sizeof(int64_t) : elements;
      seen.append(static_cast<const char*>(b.inputs()), bytes);
      seen.append(reinterpret_cast<const char*>(b.labels),
                  b.samples * b.shape.labels() * sizeof(int64_t));
      seen +=
          std::to_string(b.step) + " " + std::to_string(b.slot) + " " + std::to_string(b.digest);
    }
  }

  // "auto" of a kernel that has all in memory, "auto, cold" of one that reads everything.
  static Reading reading_of(const std::string& reader, uint64_t mib) {
    wire::DataSpec data;
    data.set_reader(reader.substr(0, reader.find(',')));
    data.set_read_ahead_mb(mib);
    return {data, [](const std::string&) {},
            [blocks = uint64_t{0}, is_cold = reader == "auto, cold"]() mutable {
              return blocks += is_cold ? 1'000'000 : 0;
            }};
  }

  TemporaryDirectory dir_;
  std::unique_ptr<Dataset> dataset_;
};

INSTANTIATE_TEST_SUITE_P(, EveryReaderOf, testing::ValuesIn([] {
                           std::vector<std::string> names;
                           for (const auto& [name, format] : formats()) names.push_back(name);
                           return names;
                         }()),
                         [](const auto& param) { return param.param; });

TEST_P(EveryReaderOf, HasTheSameBatchesByEveryReaderLittleAndFarAhead) {
  const std::string plain = read_all(nullptr, 1);
  const std::string some_slots = read_all(nullptr, 1, {1, 2});
  ASSERT_GT(plain.size(), 100U);
  for (const std::string reader : {"auto", "auto, cold", "mmap", "io_uring", "pread"})
    for (const uint64_t mib : {0, 1, 64}) {
      Reading reading = reading_of(reader, mib);
      EXPECT_TRUE(read_all(&reading, 3) == plain) << reader << " " << mib;
      EXPECT_TRUE(read_all(&reading, 1, {1, 2}) == some_slots) << reader << " " << mib;
      // Pixels that are cut are copied from where they are mapped.
      const bool is_encoded = dataset_->encoded_form() != nullptr;
      const bool is_read =
          mib > 0 && dataset_->extent(0) &&
          (reader == "io_uring" || reader == "pread" || (is_encoded && reader != "auto"));
      EXPECT_EQ(reading.figures().reads > 0, is_read) << reader << " " << mib;
    }
}

TEST_P(EveryReaderOf, EndsByNameWithEveryReaderWhereAFileIsCutOff) {
  const auto first = dataset_->extent(0);
  if (!first) GTEST_SKIP() << "is read in one way only";
  const std::string path = first->path;
  fs::resize_file(path, first->offset + 1);
  for (const std::string reader : {"auto", "auto, cold", "mmap", "io_uring", "pread"}) {
    Reading reading = reading_of(reader, 1);
    const std::string said = read_all(&reading, 2);
    EXPECT_THAT(said, HasSubstr(path)) << reader;
    EXPECT_THAT(said, testing::AnyOf(HasSubstr("since the data set was indexed"),
                                     HasSubstr("has changed under the run")))
        << reader;
  }
}

}  // namespace
}  // namespace lockstep::data
