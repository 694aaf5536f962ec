// Detects the format of the data at a path by the names of files, and by sizes and first bytes if
// the names leave it open.
//
// In a directory, the first format of this list that fits wins; from 5 to 11, unless most bytes are
// of another one of them (evidence.h):
//   1. IDX files
//   2. CIFAR-10 or CIFAR-100
//   3. arrays of images and labels, or the arrays that a job names: *.npy, then *.npz, then
//      *.safetensors
//   4. Megatron-LM's pairs of *.bin and *.idx
//   5. shards: MDS, then tar, TFRecord and Arrow
//   6. tokens: *.bin, then *.npy, then *.safetensors
//   7. a directory that a CIFAR archive unpacks to
//   8. text (*.txt)
//   9. directories of JPEG and PNG files
//  10. Parquet, whose error says how to pack it first
//  11. tables (*.csv, *.tsv); beside any other format, tables only describe the other data
//  12. "idx" if any IDX file is there; opening it then says what is missing
//  13. tar archives that are compressed as a whole (*.tar.gz, *.tgz)
//
// A file is `megatron`, `tokens`, `text`, `webdataset`, `tfrecord`, `npz`, `safetensors` or `arrow`
// by its name. It is `tokens` or `arrow` if it begins like the files of llm.c, NumPy or Arrow. Any
// other *.csv or *.tsv is a table. For Arrow, the columns of the first file decide between the
// three Arrow formats.
//
// Thread-safety: free functions.
#pragma once

#include <string>

#include "comm/base/status.h"
#include "data/base/column_names.h"

namespace lockstep::data {

// One of kDataFormats but "auto". `columns`: what a job says of them, where columns tell the
// format. kNoInput if the path is not there, or if a directory has no known format. kUsage if
// nothing tells the format of a file, or if two formats fit.
Result<std::string> detect_format(const std::string& path, const ColumnNames& columns = {});

// The format that `format` stands for at this path:
// - "auto" (or empty): the detected format
// - "npy" and "safetensors": "tokens" if the arrays are tokens
// - "arrow": the format of the columns
//
// Any other `format`, known or not, stands for itself.
Result<std::string> resolve_format(const std::string& path, const std::string& format,
                                   const ColumnNames& columns = {});

// True if a path is Parquet, which detect_format() refuses with what to do.
bool holds_parquet(const std::string& path);

// For a job that names no format: says why the directory may be another data set than the user
// thinks, and what to do. Empty: no doubt. A run refuses such a directory; `lockstep data inspect`
// warns of it.
std::string doubt_of(const std::string& path, const std::string& format);

// True if the names of the files of `path` say that some are for evaluation.
bool has_eval_files(const std::string& path, const ColumnNames& columns = {});

}  // namespace lockstep::data
