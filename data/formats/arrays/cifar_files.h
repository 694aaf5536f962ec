// The files of CIFAR-10 and CIFAR-100 in their binary version, as cifar-10-binary.tar.gz and
// cifar-100-binary.tar.gz unpack.
//
//   cifar10   data_batch_1.bin to data_batch_5.bin for training, test_batch.bin for evaluation:
//             records of a label (0 to 9) and 3,072 pixels, a byte each
//   cifar100  train.bin, test.bin: records of a coarse label, a fine label (0 to 99) and 3,072
//             pixels; data.label: coarse_label chooses the first, else Lockstep uses the fine one
//
// The pixels are three planes, red, green and blue, of 32 rows of 32. There is no header: the size
// of a file gives its number of records.
//
// Source: A. Krizhevsky, The CIFAR-10 and CIFAR-100 datasets, www.cs.toronto.edu/~kriz/cifar.html,
// "Binary version".
//
// Thread-safety: free functions and constants.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/base/column_names.h"
#include "data/base/split.h"

namespace lockstep::data {

struct CifarFormat {
  const char* name;       // of the format
  const char* directory;  // what the archive unpacks to
  const char* archive;
  uint64_t label_bytes;  // of a record
  uint64_t label_at;     // which of these is the label
  uint32_t classes;
  const char* label = "";  // its column, as Hugging Face calls it; empty: there is one only

  static constexpr uint32_t kChannels = 3;
  static constexpr uint32_t kSide = 32;
  uint64_t record_bytes() const { return label_bytes + uint64_t{kChannels} * kSide * kSide; }
};

// Null if `name` is neither format.
const CifarFormat* cifar_format(const std::string& name);

// The same format with the label that data.label names: fine_label, coarse_label, or these in the
// plural. kUsage for any other name. `path`: for messages.
Result<CifarFormat> with_label(const CifarFormat& format, const ColumnNames& columns,
                               const std::string& path);

// The format in `directory` itself; null for neither. Decides by the names of the files. It also
// checks the sizes of names that could be another format's (nanoGPT also calls its tokens
// train.bin). kUsage if `directory` holds both. REQUIRES: `directory` is a directory.
Result<const CifarFormat*> cifar_in(const std::string& directory);

// The same for the directories in `directory` that the archives unpack to.
Result<const CifarFormat*> cifar_below(const std::string& directory);

// Returns the files of a split, in their order, from `directory` or else from the archive's
// directory in it. kNoInput, naming the file, if one is missing: some of the batches would be
// another dataset.
Result<std::vector<std::string>> find_cifar_files(const std::string& directory,
                                                  const CifarFormat& format, Split split);

}  // namespace lockstep::data
