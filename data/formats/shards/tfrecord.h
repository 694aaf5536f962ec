// TFRecord shards whose records are tensorflow.train.Examples with an image and a label, as
// TensorFlow Datasets and the ImageNet scripts of TensorFlow write them.
//
//   record: length (8 bytes) | masked CRC-32C of these (4) | data | masked CRC-32C of the data (4)
//
// numbers little-endian. The image is the feature whose value is a JPEG or PNG file, and where
// there are several of these `image/encoded` or `image`. The label is the whole number in `label`,
// `image/class/label`, `class`, `cls` or `target`, else in the only feature with a single whole
// number.
//
// Lengths are checked against their CRC whenever a shard is looked at; the data's is not, for that
// would read all of every image (read/checksums.h does).
//
// A shard may be gzipped, whatever its name ends with (packed_shards.h).
//
// Source: https://www.tensorflow.org/tutorials/load_data/tfrecord, "TFRecords format details".
// Thread-safety: free functions; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/formats/images/extent_index.h"

namespace lockstep::data {

// Whether the file at `path` is one: its name has the word tfrecord or tfrecords, or ends like
// "-00000-of-00128", with or without .gz behind it, and it begins as one, or what it inflates to
// does (or with that word it is empty, or any gzip, which opening it tells).
bool is_tfrecord_file(const std::string& path);

// each(offset, data) for every record, until one is not ok. kBadData going on after the file's
// name.
Status walk_tfrecord(
    std::span<const uint8_t> file,
    const std::function<Status(uint64_t offset, std::span<const uint8_t> data)>& each);

// Whether the CRC behind the data is theirs. REQUIRES: data as walk_tfrecord() gives them.
bool has_good_checksum(std::span<const uint8_t> data);

// The samples of one shard (shards.h); their `file` is left as it is. kBadData going on after its
// name.
Result<std::vector<Extent>> samples_of_tfrecord(std::span<const uint8_t> shard);

}  // namespace lockstep::data
