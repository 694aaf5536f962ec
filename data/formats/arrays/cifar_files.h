// The files of CIFAR-10 and CIFAR-100 in their binary version, as cifar-10-binary.tar.gz and
// cifar-100-binary.tar.gz unpack.
//
//   cifar10   data_batch_1.bin to data_batch_5.bin for training, test_batch.bin for evaluation:
//             records of a label (0 to 9) and 3,072 pixels, a byte each
//   cifar100  train.bin, test.bin: records of a coarse label, a fine one (0 to 99), which is the
//             label here, and 3,072 pixels
//
// The pixels are three planes, red, green and blue, of 32 rows of 32. There is no header; a file is
// as many records as it has bytes for.
//
// Source: A. Krizhevsky, The CIFAR-10 and CIFAR-100 datasets,
// www.cs.toronto.edu/~kriz/cifar.html, "Binary version".
//
// Thread-safety: free functions and constants.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/base/split.h"

namespace lockstep::data {

struct CifarFormat {
  const char* name;       // of the format
  const char* directory;  // what the archive unpacks to
  const char* archive;
  uint64_t label_bytes;  // of a record; the last one is the label
  uint32_t classes;

  static constexpr uint32_t kChannels = 3;
  static constexpr uint32_t kSide = 32;
  uint64_t record_bytes() const { return label_bytes + kChannels * kSide * kSide; }
};

// Null for a name that is none of the two.
const CifarFormat* cifar_format(const std::string& name);

// What `directory` itself holds, going by the names of its files, and by their sizes where the
// names could be others', too (nanoGPT also calls its tokens train.bin): null for neither. kUsage
// where it holds both. REQUIRES: `directory` is one.
Result<const CifarFormat*> cifar_in(const std::string& directory);

// The same of the directories in `directory` that the archives unpack to.
Result<const CifarFormat*> cifar_below(const std::string& directory);

// The files of a split, in their order, of `directory` or else the one below it that the archive
// unpacks to. kNoInput naming one that is not there: a part of the batches would be another
// dataset.
Result<std::vector<std::string>> find_cifar_files(const std::string& directory,
                                                  const CifarFormat& format, Split split);

}  // namespace lockstep::data
