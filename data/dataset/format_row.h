// The row of a format states how to detect, open, split and verify the format. It stands in the
// format's own source; data/formats/format_rows.h lists the rows.
//
// Thread-safety: types.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/base/status.h"
#include "data/base/column_names.h"
#include "data/base/progress.h"
#include "data/base/split.h"
#include "data/dataset/dataset.h"

namespace lockstep::source {
class RemoteFiles;
}

namespace lockstep::data {

struct EncodedSource;  // data/formats/images/encoded_source.h

// Steps of the detection of a directory, in their order. A step asks the formats in the order of
// their rows. The first format of kNames, and of kRemains, that says yes wins; between the formats
// of the other steps, the evidence decides (data/open/evidence.h).
enum class DirectoryStep : uint8_t {
  kNever,
  kNames,               // file names tell: images and labels, or an index
  kShardsToTrainOn,     // of the training split
  kShardsToEvaluateOn,  // of the evaluation split, if training has none
  kLoose,               // arrays and streams of tokens, without a name of their own
  kLast,                // what may also lie beside other data
  kRemains,             // data with a part missing, or with their unpacked form beside them
};

// Steps of the detection of a single file, in their order.
enum class FileStep : uint8_t {
  kNever,
  kPair,     // a file or prefix of a pair; the path itself may not exist
  kEnding,   // the ending alone tells
  kMixed,    // the name and the first bytes tell
  kContent,  // the first bytes tell, or an ending that nothing else claimed
};

// A directory and its files.
struct Listing {
  const std::string& path;
  const std::vector<std::string>& names;
  const ColumnNames& columns;
};

struct FileLook {
  const std::string& path;
  std::span<const uint8_t> bytes;  // of the file at step kContent, else empty
  const ColumnNames& columns;
};

// Evidence for a format in a directory.
struct Evidence {
  uint64_t bytes = 0;   // of the files that are of it
  std::string example;  // one of them, for messages
};

// Returns the name of the format; empty if it is none of the row's formats.
using LookInDirectoryFn = Result<std::string> (*)(const Listing& directory);
using LookAtFileFn = Result<std::string> (*)(const FileLook& file);

// `name` if it is the row's format.
inline Result<std::string> named_if(bool is_it, const char* name) {
  return is_it ? std::string(name) : std::string();
}

struct StoredRequest {
  const std::string& path;
  const std::string& format;  // as in the job: npy_nchw also for *.npz
  Split split;
  const ColumnNames& columns;
  const std::string& cache_dir;
  const ProgressFn& progress;
};

struct EncodedRequest {
  const std::string& path;
  Split split;
  const ProgressFn& progress;
  std::shared_ptr<source::RemoteFiles> far;  // the path may be in its view
  const ColumnNames& columns;
};

// Which splits of the arrays or directories that a job names are there.
struct NamedSplits {
  bool has_any = false;  // any of them is there
  bool has_eval = false;
  bool serves_both = false;
};

// A thing with a checksum of its own: a file, or an array in a file.
struct Summed {
  std::string name;  // for messages
  std::string path;
  std::function<Status(std::span<const uint8_t> file)> check;
};

// Shards whose records have checksums.
struct RecordSums {
  using EachFn = std::function<Status(uint64_t offset, std::span<const uint8_t> data)>;
  Status (*walk)(std::span<const uint8_t> file, const EachFn& each);
  bool (*is_good)(std::span<const uint8_t> data);  // REQUIRES: data as walk() passes it
};

struct DataFormat {
  std::string_view name;

  struct DirectoryProbe {
    DirectoryStep step = DirectoryStep::kNever;
    LookInDirectoryFn look = nullptr;
    Evidence (*weigh)(const Listing& directory) = nullptr;  // null: finding it decides
    bool has_tables_beside = false;                         // tables beside it only describe it
  };
  struct FileProbe {
    FileStep step = FileStep::kNever;
    LookAtFileFn look = nullptr;
  };
  std::array<DirectoryProbe, 3> in_directory = {};
  std::array<FileProbe, 2> of_file = {};

  // The name of the format that this format turns out to be at a path; null: see resolve_format().
  std::string (*resolved)(const std::string& path, const ColumnNames& columns) = nullptr;
  // The name of the row whose functions read the files at a path; null: this one.
  std::string_view (*read_as)(const std::string& path) = nullptr;

  // Pixels and rows.
  Result<std::unique_ptr<Dataset>> (*open)(const StoredRequest& request) = nullptr;
  // Encoded images. open_dataset() opens these, and sequences (token_dataset.h), itself.
  Result<EncodedSource> (*find)(const EncodedRequest& request) = nullptr;

  // True if a path with this detected format has evaluation samples by itself.
  bool (*has_eval)(const std::string& path) = nullptr;
  // True if the files of a path do not say which are for training and evaluation.
  Result<bool> (*serves_both)(const std::string& path) = nullptr;
  // Both of these, if a job names the arrays; null: names change nothing.
  NamedSplits (*named_splits)(const std::string& path, const ColumnNames& columns) = nullptr;

  // The things with a checksum in the files of a split; null: there are none.
  Result<std::vector<Summed>> (*sums)(const std::string& path, Split split) = nullptr;
  const RecordSums* record_sums = nullptr;
};

// For rows: a path with evaluation samples of its own does not serve both splits.
template <bool (*has_eval)(const std::string&)>
Result<bool> unless(const std::string& path) {
  return !has_eval(path);
}

}  // namespace lockstep::data
