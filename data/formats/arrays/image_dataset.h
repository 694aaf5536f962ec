// Images of one shape, stored as they are in mapped files, as a Dataset. The index is arithmetic:
// no memory per sample, only per file.
//
// A format opens and checks its files, says where the samples lie in them, and gets the rest here:
// every label is looked at, fingerprint and statistics are made.
//
// Thread-safety: values and a free function; any thread and process.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/base/progress.h"
#include "data/dataset/dataset.h"
#include "data/files/mapped_file.h"

namespace lockstep::data {

// Samples at equal distances in one file.
struct ImageRun {
  std::span<const uint8_t> content;  // from the first sample to the last, with what lies between
  const uint8_t* first = nullptr;    // pixels of the first one, in `content`
  uint64_t stride_bytes = 0;         // from one to the next
  uint64_t samples = 0;
  std::string path;                        // of the pixels, for messages
  bool is_inflated = false;                // what is mapped is what the file inflates to
  std::string labels_path;                 // for messages
  std::function<int64_t(uint64_t)> label;  // as stored, of the i-th of this run
  size_t first_file = 0;                   // of ImageFiles::files, with its pixels and labels
  size_t files = 1;
};

struct ImageFiles {
  std::string format;
  SampleShape shape;
  std::vector<std::string> paths;          // for people
  std::vector<MappedFile> files;           // what the runs point into
  std::vector<ImageRun> runs;              // not empty, none without samples
  uint32_t classes = 0;                    // 0: as many as the largest label tells
  std::string advice;                      // appended to what is said of a bad label; may be empty
  std::vector<std::string> class_names{};  // by label, where they have any
};

// kBadData where a file changed meanwhile, and naming the file and the sample where a label is
// negative or too large: no class, or above limits::kLabel where the labels tell how many classes
// there are.
Result<std::unique_ptr<Dataset>> make_image_dataset(ImageFiles files, const std::string& cache_dir,
                                                    const ProgressFn& progress);

}  // namespace lockstep::data
