// Small data sets of every format of shards, plain and compressed as a whole.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "tests/support/files.h"
#include "tests/support/idx_writer.h"
#include "tests/support/tar_writer.h"
#include "tests/support/zstd_writer.h"
#include "tests/unit/data/samples/mds_samples.h"
#include "tests/unit/data/samples/tfrecord_samples.h"
#include "tests/unit/data/support/image_writer.h"

namespace lockstep::data {

// Writes shards. `variant`: another number gives other shards under the same names.
using PutShardsFn = std::function<void(const std::string& dir, bool is_packed, uint32_t variant)>;

struct PackedFormat {
  std::string name;    // of the test
  std::string format;  // data.train.format
  std::string victim;  // the first compressed file
  std::string plain_victim;
  PutShardsFn put;
};

inline void PrintTo(const PackedFormat& format, std::ostream* out) {
  *out << format.name;
}

inline std::string tar_of_images(uint32_t first = 0) {
  std::string tar;
  for (uint32_t i = 0; i < 4; ++i) {
    const std::string key = "sample" + std::to_string(i);
    tar += tar_entry({key + ".jpg", jpeg_picture(20, 20, first + i)});
    tar += tar_entry({key + ".cls", std::to_string(i % 2)});
  }
  return tar + kTarEnd;
}

inline void put_tar_shards(const std::string& dir, bool is_packed, uint32_t variant) {
  // In two archives of one file, and under both endings.
  const std::string tar = tar_of_images(variant);
  const std::string two = gzip_bytes(tar.substr(0, 700)) + gzip_bytes(tar.substr(700));
  write_file(dir + (is_packed ? "/train-0.tar.gz" : "/train-0.tar"), is_packed ? two : tar);
  const std::string more = tar_of_images(variant + 7);
  write_file(dir + (is_packed ? "/train-1.tgz" : "/train-1.tar"),
             is_packed ? gzip_bytes(more) : more);
}

inline void put_tfrecord_shards(const std::string& dir, bool is_packed, uint32_t variant) {
  const std::string first = tfrecord_sample(variant == 0 ? "datasets" : "imagenet");
  write_file(dir + "/train.tfrecord-00000-of-00002" + (is_packed ? ".gz" : ""),
             is_packed ? gzip_bytes(first) : first);
  const std::string second = tfrecord_sample("imagenet");
  write_file(dir + "/train.tfrecord-00001-of-00002" + (is_packed ? ".gz" : ""),
             is_packed ? gzip_bytes(second) : second);
}

// The sample `bytes`, whose shards are compressed here by what Streaming calls so.
inline PutShardsFn put_mds_shards(const std::string& compression) {
  return [=](const std::string& dir, bool is_packed, uint32_t variant) {
    const std::string set = variant == 0 ? "bytes" : "png";
    auto index = nlohmann::json::parse(mds_sample(set + "/index.json"));
    for (auto& shard : index["shards"]) {
      const std::string name = shard["raw_data"]["basename"];
      const std::string plain = mds_sample(set + "/" + name);
      const std::string packed = compression == "gz" ? gzip_bytes(plain) : zstd_bytes(plain);
      shard["compression"] = compression;
      shard["zip_data"] = {{"basename", name + "." + compression},
                           {"bytes", packed.size()},
                           {"hashes", nlohmann::json::object()}};
      write_file(dir + "/" + name + (is_packed ? "." + compression : ""),
                 is_packed ? packed : plain);
    }
    write_file(dir + "/index.json", index.dump());
  };
}

inline std::vector<PackedFormat> packed_formats() {
  const std::string mds = "shard.00000.mds";
  return {
      {"webdataset", "webdataset", "train-0.tar.gz", "train-0.tar", put_tar_shards},
      {"tfrecord", "tfrecord", "train.tfrecord-00000-of-00002.gz", "train.tfrecord-00000-of-00002",
       put_tfrecord_shards},
      {"mds_zstd", "mds", mds + ".zstd", mds, put_mds_shards("zstd")},
      {"mds_gz", "mds", mds + ".gz", mds, put_mds_shards("gz")},
  };
}

}  // namespace lockstep::data
