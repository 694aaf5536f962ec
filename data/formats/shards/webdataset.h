// Shards of the WebDataset library: tar archives. The files of a sample follow each other, and
// their names are equal up to the first dot.
//
//   train-000.tar: n01/a.jpg n01/a.cls n01/b.png n01/b.json ...
//
// The image is the file that ends with jpg, jpeg or png. The label is the number in cls, or
// in a file or a key of json whose name says so (column_names.h). A job may name both: the ending
// of the image, and the ending or key of the label. The reader skips other files, and hidden ones
// (hidden_names.h). It counts samples without an image. A job may name masks, too, by their
// endings; then each image has all of them. An archive may be gzipped (packed_shards.h).
//
// Source: https://github.com/webdataset/webdataset, README, "The WebDataset Format".
// Thread-safety: pure functions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/base/status.h"
#include "data/base/source_notes.h"
#include "data/formats/images/extent_index.h"

namespace lockstep::data {

// is_tar_file(): *.tar. is_packed_tar(): *.tar.gz and *.tgz, compressed as a whole
// (packed_shards.h).
bool is_tar_file(const std::string& path);
bool is_packed_tar(const std::string& path);

// Members that a job uses besides one image and one label (data.inputs, data.targets).
struct TarMasks {
  std::vector<std::string> endings = {};  // of members that are masks, in lower case
  std::string taken = {};  // the samples are the masks of this ending; empty: the images
  bool has_label = true;   // false: labels are not looked for, and every label is 0

  bool is_mask(std::string_view ending) const {
    return std::find(endings.begin(), endings.end(), ending) != endings.end();
  }
};

// The samples of one shard (shards.h); it does not set their `file`. kBadData: the message goes on
// after the shard's name.
Result<std::vector<Extent>> samples_of_tar(std::span<const uint8_t> archive,
                                           const ColumnNames& columns = {},
                                           SourceNotes* notes = nullptr,
                                           const TarMasks& masks = {});

}  // namespace lockstep::data
