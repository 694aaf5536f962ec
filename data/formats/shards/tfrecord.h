// TFRecord shards whose records are tensorflow.train.Examples with an image and a label. TensorFlow
// Datasets and TensorFlow's ImageNet scripts write such shards.
//
//   record: length (8 bytes) | masked CRC-32C of these (4) | data | masked CRC-32C of the data (4)
//
// Numbers are little-endian. The image is the feature whose value is a JPEG or PNG file; if there
// are several, the feature named `image/encoded` or `image`. The label is the single whole number
// in the feature whose name says so (column_names.h), the same one in all records of a shard. A job
// may name both.
//
// Looking at a shard checks every length against its CRC. It does not check the CRC of the data,
// since this would read every image in full; data/loader/checksums.h does.
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
#include "data/base/column_names.h"
#include "data/formats/images/extent_index.h"

namespace lockstep::data {

// True if both the name and the content of the file at `path` say TFRecord. The name has the word
// tfrecord, tfrecords or tfrec, or ends like "-00000-of-00128" or ".record", with or without .gz.
// The content, inflated if necessary, begins with a TFRecord. A name with the word also allows an
// empty file or any gzip file: opening the file then reports what is wrong.
bool is_tfrecord_file(const std::string& path);

// Calls each(offset, data) for every record, until a call is not ok. kBadData: the message goes on
// after the file's name.
Status walk_tfrecord(
    std::span<const uint8_t> file,
    const std::function<Status(uint64_t offset, std::span<const uint8_t> data)>& each);

// True if the CRC after the data matches the data. REQUIRES: data as walk_tfrecord() passes them.
bool has_good_checksum(std::span<const uint8_t> data);

// The samples of one shard (shards.h); it does not set their `file`. kBadData: the message goes on
// after the shard's name.
Result<std::vector<Extent>> samples_of_tfrecord(std::span<const uint8_t> shard,
                                                const ColumnNames& columns = {},
                                                TakenColumns* taken = nullptr);

}  // namespace lockstep::data
