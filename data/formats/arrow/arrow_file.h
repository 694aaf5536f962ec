// Opens Arrow IPC files: maps them, and inflates compressed files once into the cache directory
// (data/arrow/inflate.h).
//
// Thread-safety: values and free functions; any thread and process.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "comm/base/status.h"
#include "data/arrow/file_layout.h"
#include "data/base/column_names.h"
#include "data/base/progress.h"
#include "data/base/split.h"
#include "data/dataset/dataset.h"
#include "data/files/inflate_cache.h"
#include "data/files/mapped_file.h"
#include "data/formats/arrow/arrow_choice.h"
#include "data/formats/shards/shards.h"

namespace lockstep::data {

// True for the endings *.arrow, *.feather, *.ipc.
bool has_arrow_ending(const std::string& path);

// True for a file in which Hugging Face's datasets keep the result of map() beside a data set: the
// same rows once more.
bool is_arrow_cache(const std::string& name);

// The files of this split (shards.h), without such caches if there are other files.
Result<Shards> find_arrow_shards(const std::string& path, Split split);

// True if the path has evaluation files that are not training files.
bool has_arrow_eval(const std::string& path);

// The format (see arrow_format()) of the first file, which decides for all files. "arrow" if it
// cannot be told; opening the file then says why.
std::string arrow_format_of(const std::string& path, const ColumnNames& columns = {});

// "arrow" for pixels and rows, "arrow_images" for JPEG and PNG, "arrow_tokens" for tokens.
std::string arrow_format(ArrowUse use);

struct ArrowFile {
  std::string path;
  MappedFile file;  // in place, or an inflated copy
  bool is_inflated = false;
  ArrowLayout layout;  // of bytes(); not compressed
  ArrowChoice choice;

  std::span<const uint8_t> bytes() const {
    return file.bytes().first(file.bytes().size() - (is_inflated ? kTrailerBytes : 0));
  }
};

// Errors as open_dataset(). `format`: the format above that the file must have.
Result<ArrowFile> open_arrow_file(const std::string& path, const std::string& format,
                                  const ColumnNames& columns, const std::string& cache_dir,
                                  const ProgressFn& progress);

// A copy of the file without compression, in `cache_dir` under `name` (inflate_cache.h).
Result<MappedFile> inflate_arrow_file(const std::string& path, const std::string& name,
                                      const ColumnNames& columns, const std::string& cache_dir,
                                      const ProgressFn& progress);

// Opens images of pixels. `training`: for evaluation files, the training files beside them, which
// say which target is the label. Null: there are none.
Result<std::unique_ptr<Dataset>> open_arrow_pixels(const Shards& shards, const Shards* training,
                                                   const ColumnNames& columns,
                                                   const std::string& cache_dir,
                                                   const ProgressFn& progress);

}  // namespace lockstep::data
