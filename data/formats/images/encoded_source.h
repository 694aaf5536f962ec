// Where encoded samples come from: the files, and what looks at them.
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
#include "data/formats/images/extent_index.h"

namespace lockstep::source {
class RemoteFiles;
}

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

// The source, or where its files are compressed, in batches or as a whole, that of copies in
// `cache_dir` which are not; before its index is made or opened. Errors as open_dataset().
Result<EncodedSource> inflated(EncodedSource source, const std::string& cache_dir);

}  // namespace lockstep::data
