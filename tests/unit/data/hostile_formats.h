// A small good data set of every format, and the file of it that tests damage.
#pragma once

#include <filesystem>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "data/base/column_names.h"
#include "tests/support/files.h"
#include "tests/support/idx_writer.h"
#include "tests/support/tar_writer.h"
#include "tests/unit/data/samples/arrow_samples.h"
#include "tests/unit/data/samples/mds_samples.h"
#include "tests/unit/data/samples/npy_samples.h"
#include "tests/unit/data/samples/npz_samples.h"
#include "tests/unit/data/samples/safetensors_samples.h"
#include "tests/unit/data/samples/tfrecord_samples.h"
#include "tests/unit/data/support/array_files.h"
#include "tests/unit/data/support/image_writer.h"
#include "tests/unit/data/support/packed_files.h"

namespace lockstep::data {

struct HostileFormat {
  std::string name;    // of the test
  std::string format;  // data.train.format
  std::string victim;  // below the data set's directory
  std::function<void(const std::string& directory)> write;
  bool says_its_size = true;  // else any part of the file is a file of the format
  bool is_inflated = false;   // what is read is a copy in the cache, or in memory
  // The ending of the victim if it may have another name.
  std::string renamed_ending{};
  ColumnNames columns{};  // as the job names them
};

inline void PrintTo(const HostileFormat& format, std::ostream* out) {
  *out << format.name;
}

inline std::string little_endian(uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}

inline std::string uint16_tokens(uint32_t count) {
  std::string out;
  for (uint32_t i = 0; i < count; ++i) out += little_endian(i * 7 % 50, 2);
  return out;
}

inline void write_idx_set(const std::string& dir, bool gzipped) {
  const auto put = [&](const std::string& name, const std::string& content) {
    write_file(dir + "/" + name + (gzipped ? ".gz" : ""), gzipped ? gzip_bytes(content) : content);
  };
  put("train-images-idx3-ubyte", some_images(40, 40, 40));
  put("train-labels-idx1-ubyte", some_labels(40));
}

// Arrays by name, with a field of every type; `stem` as write_arrays() has it.
inline std::function<void(const std::string&)> named_arrays(const std::string& stem,
                                                            const std::string& ending) {
  return [=](const std::string& dir) {
    write_arrays(dir, stem, ending,
                 {test_array<uint8_t>("a", "|u1", {4, 2, 2}, std::vector<uint8_t>(16, 7)),
                  test_array<double>("b", "<f8", {4, 3}, std::vector<double>(12, 0.5)),
                  test_array<int16_t>("c", "<i2", {4}, {1, 0, 2, 1}),
                  test_array<uint64_t>("d", "<u8", {4, 2}, std::vector<uint64_t>(8, 3))});
  };
}

inline void write_megatron_set(const std::string& dir) {
  write_file(dir + "/x.bin", uint16_tokens(22));
  write_file(dir + "/x.idx", std::string("MMIDIDX\0\0", 9) + little_endian(1, 8) + '\x08' +
                                 little_endian(2, 8) + little_endian(2, 8) + little_endian(11, 4) +
                                 little_endian(11, 4) + little_endian(0, 8) + little_endian(22, 8) +
                                 little_endian(0, 8) + little_endian(2, 8));
}

inline std::vector<HostileFormat> hostile_formats() {
  const auto one_file = [](const std::string& file, const std::string& content) {
    return [file, content](const std::string& dir) { write_file(dir + "/" + file, content); };
  };
  const std::string llmc = little_endian(20240520, 4) + little_endian(1, 4) + little_endian(40, 4) +
                           std::string(1012, '\0') + uint16_tokens(40);
  return {
      {"idx", "idx", "train-images-idx3-ubyte",
       [](const std::string& dir) { write_idx_set(dir, false); }},
      {"idx_labels", "idx", "train-labels-idx1-ubyte",
       [](const std::string& dir) { write_idx_set(dir, false); }},
      {.name = "idx_gzipped",
       .format = "idx",
       .victim = "train-images-idx3-ubyte.gz",
       .write = [](const std::string& dir) { write_idx_set(dir, true); },
       .is_inflated = true},
      {.name = "cifar",
       .format = "cifar10",
       .victim = "data_batch_3.bin",
       .write =
           [](const std::string& dir) {
             for (int i = 1; i <= 5; ++i)
               write_file(dir + "/data_batch_" + std::to_string(i) + ".bin",
                          std::string(2 * 3073, static_cast<char>(i)));
           },
       .says_its_size = false},
      {"npy", "npy", "images.npy",
       [](const std::string& dir) {
         write_file(dir + "/images.npy", npy_sample("images_nhw"));
         write_file(dir + "/labels.npy", npy_sample("labels_int64"));
       }},
      {.name = "npz",
       .format = "npz",
       .victim = "x.npz",
       .write = one_file("x.npz", npz_sample("pair")),
       .renamed_ending = ".npz"},
      {.name = "npz_compressed",
       .format = "npz",
       .victim = "x.npz",
       .write = one_file("x.npz", npz_sample("mnist_compressed")),
       .is_inflated = true,
       .renamed_ending = ".npz"},
      {.name = "safetensors",
       .format = "safetensors",
       .victim = "x.safetensors",
       .write = one_file("x.safetensors", safetensors_sample("pair")),
       .renamed_ending = ".safetensors"},
      {.name = "npy_fields",
       .format = "npy",
       .victim = "b.npy",
       .write = named_arrays("", ".npy"),
       .columns = {.inputs = {"a", "b"}, .targets = {"c", "d"}}},
      {.name = "npz_fields",
       .format = "npz",
       .victim = "x.npz",
       .write = named_arrays("x", ".npz"),
       .renamed_ending = ".npz",
       .columns = {.inputs = {"a", "b"}, .targets = {"c", "d"}}},
      {.name = "safetensors_fields",
       .format = "safetensors",
       .victim = "x.safetensors",
       .write = named_arrays("x", ".safetensors"),
       .renamed_ending = ".safetensors",
       .columns = {.inputs = {"a", "b"}, .targets = {"c", "d"}}},
      {.name = "safetensors_tokens",
       .format = "tokens",
       .victim = "x.safetensors",
       .write = one_file("x.safetensors", safetensors_sample("tokens_i64")),
       .renamed_ending = ".safetensors"},
      {.name = "tokens",
       .format = "tokens",
       .victim = "x.bin",
       .write = one_file("x.bin", llmc),
       .renamed_ending = ".bin"},
      {.name = "tokens_npy",
       .format = "tokens",
       .victim = "x.npy",
       .write = one_file("x.npy", npy_sample("tokens_uint16")),
       .renamed_ending = ".npy"},
      {.name = "tokens_bare",
       .format = "tokens_u32",
       .victim = "x.bin",
       .write = one_file("x.bin", std::string(4'000, '\0')),
       .says_its_size = false,
       .renamed_ending = ".bin"},
      {.name = "text",
       .format = "text",
       .victim = "x.txt",
       .write = one_file("x.txt", std::string(9'000, 'x')),
       .says_its_size = false,
       .renamed_ending = ".txt"},
      {"megatron", "megatron", "x.bin", write_megatron_set},
      {"megatron_index", "megatron", "x.idx", write_megatron_set},
      {"image_folder", "image_folder", "a/1.jpg",
       [](const std::string& dir) {
         for (const char* name : {"a", "b"}) {
           std::filesystem::create_directories(dir + "/" + name);
           for (uint32_t i = 0; i < 3; ++i)
             write_file(dir + "/" + name + "/" + std::to_string(i) + ".jpg",
                        jpeg_picture(20, 20, i));
         }
       }},
      {.name = "webdataset",
       .format = "webdataset",
       .victim = "x.tar",
       .write = one_file("x.tar", tar_of_images()),
       .renamed_ending = ".tar"},
      {.name = "webdataset_gzipped",
       .format = "webdataset",
       .victim = "x.tar.gz",
       .write = one_file("x.tar.gz", gzip_bytes(tar_of_images())),
       .is_inflated = true,
       .renamed_ending = ".tar.gz"},
      {.name = "tfrecord_gzipped",
       .format = "tfrecord",
       .victim = "x.tfrecord.gz",
       .write = one_file("x.tfrecord.gz", gzip_bytes(tfrecord_sample("datasets"))),
       .is_inflated = true,
       .renamed_ending = ".tfrecord.gz"},
      {.name = "mds_compressed",
       .format = "mds",
       .victim = "shard.00000.mds.zstd",
       .write =
           [](const std::string& dir) {
             for (const char* name : {"index.json", "shard.00000.mds.zstd"})
               write_file(dir + "/" + name, mds_sample("compressed/" + std::string(name)));
           },
       .is_inflated = true},
      {.name = "tfrecord",
       .format = "tfrecord",
       .victim = "x.tfrecord",
       .write = one_file("x.tfrecord", tfrecord_sample("datasets")),
       .renamed_ending = ".tfrecord"},
      {.name = "arrow",
       .format = "arrow",
       .victim = "x.arrow",
       .write = one_file("x.arrow", arrow_sample("tensor_hwc")),
       .renamed_ending = ".arrow"},
      {.name = "arrow_compressed",
       .format = "arrow",
       .victim = "x.arrow",
       .write = one_file("x.arrow", arrow_sample("tensor_grey_zstd")),
       .is_inflated = true,
       .renamed_ending = ".arrow"},
      {.name = "arrow_images",
       .format = "arrow_images",
       .victim = "x.arrow",
       .write = one_file("x.arrow", arrow_sample("hugging_face")),
       .renamed_ending = ".arrow"},
      {.name = "arrow_images_compressed",
       .format = "arrow_images",
       .victim = "x.arrow",
       .write = one_file("x.arrow", arrow_sample("encoded_lz4")),
       .is_inflated = true,
       .renamed_ending = ".arrow"},
      {.name = "arrow_tokens",
       .format = "arrow_tokens",
       .victim = "x.arrow",
       .write = one_file("x.arrow", arrow_sample("list_int32_batches")),
       .renamed_ending = ".arrow"},
      {.name = "csv",
       .format = "csv",
       .victim = "x.csv",
       .write = one_file("x.csv", "a,b,label\n1,2.5,no\n\"3\",-4e1,yes\n5,6,no\n"),
       .says_its_size = false,
       .is_inflated = true,
       .renamed_ending = ".csv"},
      {"mds", "mds", "shard.00000.mds",
       [](const std::string& dir) {
         write_file(dir + "/index.json", mds_sample("bytes/index.json"));
         write_file(dir + "/shard.00000.mds", mds_sample("bytes/shard.00000.mds"));
       }},
      {"mds_index", "mds", "index.json",
       [](const std::string& dir) {
         write_file(dir + "/index.json", mds_sample("bytes/index.json"));
         write_file(dir + "/shard.00000.mds", mds_sample("bytes/shard.00000.mds"));
       }},
  };
}

}  // namespace lockstep::data
