// Images of one shape, stored as they are in mapped files, as a Dataset. The index is arithmetic:
// it takes no memory per sample, only per file.
//
// A format opens and checks its files, and says where the samples lie in them. This code does the
// rest: it looks at every label, and computes fingerprint and statistics.
//
// Thread-safety: values and a free function; any thread and process.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/base/progress.h"
#include "data/dataset/dataset.h"
#include "data/dataset/fields.h"
#include "data/files/mapped_file.h"
#include "data/formats/arrays/field_values.h"

namespace lockstep::data {

// Samples at equal distances in one file.
struct ImageRun {
  std::span<const uint8_t> content;  // first to last sample, with the bytes between samples
  const uint8_t* first = nullptr;    // pixels of the first sample, in `content`
  uint64_t stride_bytes = 0;         // from one sample to the next
  uint64_t samples = 0;
  std::string path;                        // of the pixels, for messages
  bool is_inflated = false;                // the mapped bytes are an inflated copy
  std::string labels_path;                 // for messages
  std::function<int64_t(uint64_t)> label;  // as stored, of this run's i-th sample
  size_t first_file = 0;                   // in ImageFiles::files: pixels, labels and fields
  size_t files = 1;
  std::vector<FieldValues> fields = {};  // by ImageFiles::fields
  std::string array = {};                // of the pixels, with its file, if they have a name
};

// Which of ImageFiles::fields is the label, as far as this is known without looking at the values.
// Empty: none of them.
struct LabelRule {
  std::optional<size_t> field;
};

struct ImageFiles {
  std::string format;
  SampleShape shape;
  std::vector<std::string> paths;          // for people to read
  std::vector<MappedFile> files;           // the runs point into them
  std::vector<ImageRun> runs;              // not empty; no run is empty
  uint32_t classes = 0;                    // 0: the largest label decides
  std::string advice;                      // appended to messages about a bad label; may be empty
  std::vector<std::string> class_names{};  // by label; empty without names
  std::vector<std::string> row_names{};    // of the values of a row; empty without names
  TakenColumns columns{};                  // of formats that have columns
  // Fields that the job names besides the input, with name and role; the values say the rest
  // (image_fields.h). If the job names any, the runs need no labels.
  std::vector<FieldSpec> fields = {};
  std::optional<LabelRule> label_rule = {};  // empty: the values say it
  // The only field is a label that the job did not name: then the data set has no fields.
  bool has_label_alone = false;
};

// kBadData if a file changed meanwhile, if a float of an image is NaN, infinite or beyond float32
// (larger files than kWholeContentBytes are looked at when their samples are read), or if a label
// is negative or too large; the message for a label names the file and the sample. A label is too
// large if it is no class, or, if the labels decide the number of classes, above limits::kLabel.
Result<std::unique_ptr<Dataset>> make_image_dataset(ImageFiles files, const std::string& cache_dir,
                                                    const ProgressFn& progress);

}  // namespace lockstep::data
