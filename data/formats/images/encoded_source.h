// Where encoded samples come from: which files of a path are those of a split, and what looks at
// them, by format.
//
// Thread-safety: values and free functions; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/dataset/dataset.h"
#include "data/formats/images/extent_index.h"
#include "data/source/remote_files.h"

namespace lockstep::data {

struct EncodedSource {
  std::string format;
  std::string directory;                 // what names in the index are relative to
  std::vector<std::string> names;        // of its files, where not all in it are of the data set
  std::string shown_directory;           // where they really are, for messages
  std::map<size_t, std::string> copied;  // by file of the index (Shards)
  bool has_class_names = false;
  std::shared_ptr<source::RemoteFiles> far;  // what has the content of files that are only places
  // What it takes to look at all samples: everything but the fingerprint.
  std::function<Result<IndexContent>(uint32_t threads)> look;
  // Where samples may be compressed once more: the same source as inflated().
  std::function<Result<EncodedSource>(const std::string& cache_dir)> inflate;
};

// Of this path and split, which may be in the view of `far`. REQUIRES: is_encoded_format(format).
// `progress` outlives it. Errors as open_dataset().
Result<EncodedSource> find_encoded_source(const std::string& path, const std::string& format,
                                          Split split, const ProgressFn& progress,
                                          std::shared_ptr<source::RemoteFiles> far = nullptr);

// The source, or where its files are compressed, in batches or as a whole, that of copies in
// `cache_dir` which are not; before its index is made or opened. Errors as open_dataset().
Result<EncodedSource> inflated(EncodedSource source, const std::string& cache_dir);

// Whether the path has samples for evaluation that are none for training.
bool has_encoded_eval(const std::string& path, const std::string& format);

// The format of a directory with shards, in it or in the directories of its splits; empty where it
// has none. Archives *.tar.gz and *.tgz are none for this: they may be what everything beside them
// was unpacked from.
std::string format_of_shards(const std::string& directory);

// Whether there are such archives, each for itself (a file) or in a directory like that.
bool is_packed_tar(const std::string& path);
bool has_packed_tars(const std::string& directory);

}  // namespace lockstep::data
