// Every format of data, a small data set of each in a directory of a test's own.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "data/dataset/sample_cut.h"
#include "tests/support/files.h"
#include "tests/support/idx_writer.h"
#include "tests/support/tar_writer.h"
#include "tests/unit/data/samples/arrow_samples.h"
#include "tests/unit/data/samples/mds_samples.h"
#include "tests/unit/data/samples/npz_samples.h"
#include "tests/unit/data/samples/safetensors_samples.h"
#include "tests/unit/data/samples/tfrecord_samples.h"
#include "tests/unit/data/support/document_files.h"
#include "tests/unit/data/support/image_writer.h"
#include "tests/unit/data/support/mask_writer.h"
#include "tests/unit/data/support/packed_files.h"

namespace lockstep::data {

using PutFn = std::function<void(const std::string& dir)>;

// The files of a format, and how to open them.
struct Format {
  PutFn put;
  SampleCut cut{};
  std::string name = "auto";
  bool has_tokenizer = false;
};

namespace every_format {

inline void put_pictures(const std::string& dir) {
  for (uint32_t i = 0; i < 24; ++i) {
    const std::string below = dir + "/" + std::string(1, static_cast<char>('a' + i % 3));
    std::filesystem::create_directories(below);
    write_file(below + "/" + std::to_string(i) + ".jpg", jpeg_picture(80 + i, 110 - i, i));
  }
}

inline void put_masked_pictures(const std::string& dir) {
  for (const char* below : {"/images", "/masks"}) std::filesystem::create_directories(dir + below);
  for (uint32_t i = 0; i < 24; ++i) {
    const std::string name = std::to_string(i);
    write_file(dir + "/images/" + name + ".jpg", jpeg_picture(80 + i, 110 - i, i));
    std::vector<uint8_t> values;
    for (uint32_t at = 0; at < (80 + i) * (110 - i); ++at)
      values.push_back(static_cast<uint8_t>(at / 40 * (i + 1) % 21));
    write_file(dir + "/masks/" + name + ".png", mask_png(values, 80 + i, 110 - i));
  }
}

inline void put_tars(const std::string& dir) {
  for (uint32_t shard = 0; shard < 3; ++shard) {
    std::string archive;
    for (uint32_t i = 0; i < 8; ++i) {
      const std::string name = std::to_string(i);
      archive += tar_entry({name + ".jpg", jpeg_picture(80 + i, 110, 8 * shard + i)});
      archive += tar_entry({name + ".cls", std::to_string(i % 3)});
    }
    write_file(dir + "/train-" + std::to_string(shard) + ".tar", archive + kTarEnd);
  }
}

// The same, gzipped.
inline void put_packed_tars(const std::string& dir) {
  put_tars(dir);
  for (const char* shard : {"/train-0.tar", "/train-1.tar", "/train-2.tar"}) {
    write_file(dir + shard + ".gz", gzip_bytes(slurp(dir + shard)));
    std::filesystem::remove(dir + shard);
  }
}

inline void put_mds(const std::string& dir) {
  for (const auto& [name, hex] : kMdsSamples)
    if (name.starts_with("bytes/")) write_file(dir + name.substr(5), mds_sample(name));
}

// Records of `labels` labels, of which the last one counts.
inline std::string cifar_records(int first, int count, size_t labels) {
  std::string records;
  for (int i = 0; i < count; ++i)
    records += std::string(labels, static_cast<char>(i)) +
               std::string(3'072, static_cast<char>(10 * first + i));
  return records;
}

inline void put_cifar10(const std::string& dir) {
  for (int batch = 1; batch <= 5; ++batch)
    write_file(dir + "/data_batch_" + std::to_string(batch) + ".bin", cifar_records(batch, 9, 1));
}

inline PutFn put_idx(uint32_t count, uint32_t side, bool is_gzipped = false) {
  return [=](const std::string& dir) {
    const auto put = [&](const std::string& name, const std::string& content) {
      write_file(dir + "/" + name + (is_gzipped ? ".gz" : ""),
                 is_gzipped ? gzip_bytes(content) : content);
    };
    put("train-images-idx3-ubyte", some_images(count, side, side));
    put("train-labels-idx1-ubyte", some_labels(count));
  };
}

inline std::string npy_bytes(const std::string& type, const std::string& shape,
                             const std::string& content) {
  std::string text =
      "{'descr': '" + type + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  text.resize(117, ' ');
  return std::string("\x93NUMPY\x01\0\x76\0", 10) + text + "\n" + content;
}

inline Tokens some_tokens(int64_t count) {
  Tokens tokens;
  for (int64_t i = 0; i < count; ++i) tokens.push_back(i * 7 % 251);
  return tokens;
}

inline void put_npy(const std::string& dir) {
  const std::string pixels = some_images(30, 5, 12).substr(16);
  write_file(dir + "/images.npy", npy_bytes("|u1", "30, 5, 4, 3", pixels));
  write_file(dir + "/labels.npy", npy_bytes("|u1", "30,", some_labels(30).substr(8)));
}

inline void put_token_npy(const std::string& dir) {
  write_file(dir + "/a.npy", npy_bytes("<u2", "90,", stored<uint16_t>(some_tokens(90))));
  write_file(dir + "/b.npy", npy_bytes("<u2", "70,", stored<uint16_t>(some_tokens(70))));
}

inline void put_token_tensor(const std::string& dir) {
  const std::string header =
      R"({"input_ids":{"dtype":"I64","shape":[120],"data_offsets":[0,960]}})";
  write_file(dir + "/a.safetensors",
             number(header.size(), 8) + header + stored<int64_t>(some_tokens(120)));
}

inline void put_megatron(const std::string& dir) {
  std::vector<uint64_t> sizes;
  std::vector<uint64_t> firsts;
  uint64_t tokens = 0;
  for (uint64_t i = 0; i < 20; ++i) {
    firsts.push_back(i);
    sizes.push_back(3 + i * 5 % 11);
    tokens += sizes.back();
  }
  firsts.push_back(20);
  write_file(dir + "/x.idx", index_of(sizes, firsts));
  write_file(dir + "/x.bin", stored<uint16_t>(some_tokens(static_cast<int64_t>(tokens))));
}

template <typename T>
inline void put_tokens(const std::string& dir) {
  write_file(dir + "/a.bin", stored<T>(some_tokens(500)));
  write_file(dir + "/b.bin", stored<T>(some_tokens(300)));
}

inline void put_texts(const std::string& dir) {
  for (int file = 0; file < 14; ++file) {
    std::string text;
    for (int i = 0; i < 3 + file * 5 % 13; ++i) text += "It's " + std::to_string(file * i) + "! ";
    write_file(dir + "/" + std::to_string(file) + ".txt", text);
  }
}

inline void put_table(const std::string& dir) {
  std::string text = "a,b,label\n";
  for (int i = 0; i < 40; ++i)
    text +=
        std::to_string(i) + "," + std::to_string(-0.5 * i) + "," + (i % 3 ? "yes" : "no") + "\n";
  write_file(dir + "/x.csv", text);
}

inline PutFn put_arrow(const std::string& sample) {
  return [sample](const std::string& dir) { write_file(dir + "/x.arrow", arrow_sample(sample)); };
}

inline PutFn put_one(const std::string& name, const std::string& content) {
  return [=](const std::string& dir) { write_file(dir + "/" + name, content); };
}

inline SampleCut sequences(uint32_t block, Documents documents = Documents::kStream) {
  SampleCut cut{.block = block};
  cut.documents = documents;
  return cut;
}

inline SampleCut ended(SampleCut cut, uint64_t token) {
  cut.document_end = token;
  return cut;
}

inline SampleCut with_targets(SampleCut cut, std::vector<std::string> targets) {
  cut.columns.targets = std::move(targets);
  return cut;
}

inline SampleCut by_length(SampleCut cut) {
  cut.by_length = true;
  return cut;
}

}  // namespace every_format

inline const std::map<std::string, Format>& every_format_by_name() {
  using namespace every_format;
  constexpr ImageFrame kSmall{CropKind::kRandomResized, 16, 0};
  const SampleCut images{.block = 0, .vocab = 0, .frame = kSmall};
  static const std::map<std::string, Format> all{
      {"idx", {put_idx(60, 256)}},  // more than is read ahead: 60 of 64 KiB
      {"idx_gzipped", {put_idx(40, 16, /*is_gzipped=*/true)}},
      {"idx_cut", {put_idx(30, 20), images}},
      {"cifar10", {put_cifar10}},
      {"cifar100", {put_one("train.bin", cifar_records(1, 40, 2)), {}, "cifar100"}},
      {"npy", {put_npy}},
      {"npz", {put_one("mnist.npz", npz_sample("mnist"))}},
      {"npz_inflated", {put_one("mnist.npz", npz_sample("mnist_compressed"))}},
      {"safetensors", {put_one("x.safetensors", safetensors_sample("mnist"))}},
      {"csv", {put_table}},
      {"arrow", {put_arrow("tensor_hwc")}},
      {"arrow_compressed", {put_arrow("tensor_grey_zstd")}},
      {"arrow_images", {put_arrow("encoded"), images}},
      {"arrow_images_compressed", {put_arrow("encoded_lz4"), images}},
      {"arrow_stream_compressed", {put_arrow("hugging_face_zstd"), images}},
      {"arrow_tokens", {put_arrow("list_uint16"), sequences(4)}},
      // The first sequence lies in two batches.
      {"arrow_tokens_in_batches", {put_arrow("list_int32_batches"), sequences(4)}},
      {"arrow_tokens_compressed", {put_arrow("flat_uint16_lz4"), sequences(1)}},
      {"tokens", {put_tokens<uint16_t>, sequences(7)}},
      {"tokens_u32", {put_tokens<uint32_t>, sequences(7), "tokens_u32"}},
      {"tokens_npy", {put_token_npy, sequences(5)}},
      {"tokens_safetensors", {put_token_tensor, sequences(5)}},
      {"megatron", {put_megatron, sequences(5)}},
      {"text", {put_one("a.txt", std::string(1'000, 'x') + "yz"), sequences(9)}},
      {"text_tokenized", {put_texts, sequences(3), "auto", /*has_tokenizer=*/true}},
      {"documents_padded", {put_tokens<uint16_t>, ended(sequences(40, Documents::kPad), 7)}},
      {"documents_packed", {put_tokens<uint16_t>, ended(sequences(40, Documents::kPack), 8)}},
      {"documents_by_length", {put_megatron, by_length(sequences(9, Documents::kPad))}},
      {"documents_of_lists", {put_arrow("list_uint16"), sequences(4, Documents::kPad)}},
      {"documents_of_text",
       {put_texts, sequences(24, Documents::kPack), "auto", /*has_tokenizer=*/true}},
      {"image_folder", {put_pictures, images}},
      {"image_mask", {put_masked_pictures, with_targets(images, {"masks"})}},
      {"webdataset", {put_tars, images}},
      {"tfrecord", {put_one("train.tfrecord-00000-of-00001", tfrecord_sample("datasets")), images}},
      {"mds", {put_mds, images}},
      {"webdataset_gzipped", {put_packed_tars, images}},
      {"tfrecord_gzipped",
       {put_one("train.tfrecord.gz", gzip_bytes(tfrecord_sample("datasets"))), images}},
      {"mds_compressed",
       {[](const std::string& dir) { put_mds_shards("zstd")(dir, /*is_packed=*/true, 0); },
        images}},
  };
  return all;
}

inline std::vector<std::string> every_format_name() {
  std::vector<std::string> names;
  for (const auto& [name, format] : every_format_by_name()) names.push_back(name);
  return names;
}

}  // namespace lockstep::data
