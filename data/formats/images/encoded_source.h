// Where encoded samples come from: the files, and the function that looks at them.
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
#include "data/base/column_names.h"
#include "data/base/damaged_files.h"
#include "data/dataset/fields.h"
#include "data/formats/images/extent_index.h"

namespace lockstep::source {
class RemoteFiles;
}

namespace lockstep::data {

struct EncodedSource {
  std::string format;
  std::string directory;                 // names in the index are relative to it
  std::vector<std::string> names;        // of the data set's files, if the directory has others
  std::vector<std::string> files;        // the same as they lie there, compressed or not
  std::string shown_directory;           // where the files really are, for messages
  std::map<size_t, std::string> copied;  // by the file's number in the index (Shards)
  bool has_class_names = false;
  ColumnNames columns;                       // what the job says of them
  std::shared_ptr<source::RemoteFiles> far;  // has the content of files that are only places
  // Tells its index from others of the same files; empty: the images without fields.
  std::string variant = {};
  // Fields besides the input and the label (data/dataset/fields.h). Fields that follow the image
  // have no dims yet.
  std::vector<FieldSpec> fields = {};
  // The masks of these fields, in their order: samples of their own (indexed_masks.h).
  std::vector<EncodedSource> masks = {};
  // Masks and images belong together by their names without ending. False: by their numbers.
  bool joins_by_stem = false;
  // Looks at all samples; returns everything but the fingerprint. Leaves damaged files out and
  // reports them in `damaged`; an error that names them if none is sound.
  std::function<Result<IndexContent>(uint32_t threads, DamagedFiles& damaged)> look;
  // Set if samples may be compressed once more. Returns what inflated() returns.
  std::function<Result<EncodedSource>(const std::string& cache_dir)> inflate;
};

// The source itself if its files are not compressed. If they are compressed, in batches or as a
// whole: the source of uncompressed copies in `cache_dir`. Call it before making or opening the
// index. The same for the masks. Errors as open_dataset().
Result<EncodedSource> inflated(EncodedSource source, const std::string& cache_dir);

}  // namespace lockstep::data
