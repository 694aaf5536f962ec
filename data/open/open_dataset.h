// Opens the files of a data set, of any format.
//
// ERRORS of open_dataset(), each one sentence that names the file and says what to do:
//   kNoInput  the directory or a file of the pair is not there
//   kBadData  truncated, corrupt or not what it says it is; counts that differ; no sample
//   kUsage    an unknown format, or a format that the files do not tell
//   kInternal the cache cannot be written, or the machine failed to read
//
// Thread-safety: a free function; any thread and process.
#pragma once

#include <memory>
#include <string>

#include "comm/base/status.h"
#include "data/base/progress.h"
#include "data/base/split.h"
#include "data/dataset/dataset.h"
#include "data/dataset/sample_cut.h"

namespace lockstep::wire {
class DatasetSpec;
}

namespace lockstep::data {

// Opens by spec.format, one of kDataFormats (comm/run/job/data_formats.h), or as detect_format()
// finds it. data/FORMATS.md describes the formats; the headers beside each format's row
// (data/formats/format_rows.h) say what it takes.
//
// Lockstep maps all files and reads them in place, with these exceptions:
// - It inflates gzipped IDX files, compressed arrays, and shards compressed as a whole
//   (packed_shards.h) once into `cache_dir`. It creates `cache_dir` if missing.
// - It turns text with SampleCut::tokenizer into tokens once, in `cache_dir` (tokenized_text.h).
// - It finds encoded images through an index in `cache_dir` (extent_index.h), and reads an image
//   when needed.
Result<std::unique_ptr<Dataset>> open_dataset(const wire::DatasetSpec& spec, Split split,
                                              const std::string& cache_dir,
                                              const ProgressFn& progress = {},
                                              const SampleCut& cut = {});

// Opens data that the user names for evaluation: the split kEval, or all of a directory in which no
// name says that a file is for evaluation. Errors as open_dataset().
Result<std::unique_ptr<Dataset>> open_to_evaluate(const wire::DatasetSpec& spec,
                                                  const std::string& cache_dir,
                                                  const ProgressFn& progress = {},
                                                  const SampleCut& cut = {});

}  // namespace lockstep::data
