// Sets of shards: files that hold many encoded samples each. What every format of shards has in
// common; how one of them is read is in the file of its name.
//
// Shards are read in the order of their names' bytes. A directory for each split
// (split_directory.h) tells which are for evaluation, or else their names do: val, valid,
// validation, test or eval is a word of them (list_files.h).
//
// Thread-safety: values and free functions; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/base/progress.h"
#include "data/base/split.h"
#include "data/files/whole_file.h"
#include "data/formats/images/extent_index.h"
#include "data/source/view/remote_files.h"

namespace lockstep::data {

// One that is compressed as a whole, so that no sample of it can be read by itself.
struct PackedShard {
  WholeCodec codec = WholeCodec::kNone;
  std::string file;                    // its name, within the directory
  std::optional<uint64_t> bytes;       // that it inflates to, and
  std::optional<uint64_t> file_bytes;  // its own, where an index says them
};

struct Shards {
  std::string directory;
  std::vector<std::string> names;            // within it, sorted
  std::vector<std::string> sources;          // other files that say what is in them, within it
  std::shared_ptr<source::RemoteFiles> far;  // what has their content; null: they are here
  // By their place in `names`, which are those that they have inflated (packed_shards.h).
  std::map<size_t, PackedShard> packed = {};
  // Of copies in a cache: where the data set really is, and by place in `names` what those are made
  // of that end with a trailer (inflate_cache.h).
  std::string home = {};
  std::map<size_t, std::string> copied = {};

  // For messages.
  const std::string& shown_directory() const { return home.empty() ? directory : home; }
};

// The files of a directory that `is_shard` takes, of this split; or the one file `path`, which
// serves either. kNoInput, saying `what` there should be, where there is none.
using IsShardFn = std::function<bool(const std::string& path)>;
Result<Shards> find_shards(const std::string& path, Split split, const std::string& what,
                           const IsShardFn& is_shard);

// The samples of the i-th shard, which is `bytes`; their `file` is left as it is. kBadData going on
// after the shard's name. Any thread.
using ReadShardFn =
    std::function<Result<std::vector<Extent>>(size_t i, std::span<const uint8_t> bytes)>;

// Everything but the fingerprint, several shards at a time. Errors as open_dataset(), naming shard
// and sample; kBadData where all of them together have no sample.
Result<IndexContent> look_at_shards(const Shards& shards, const ReadShardFn& read, uint32_t threads,
                                    const ProgressFn& progress);

// The image that is `bytes` from `offset` on of its shard, without its label. kBadData going on
// after its name: "is an image of ..., " and what else may be wrong with it.
// REQUIRES: it lies within the shard.
Result<Extent> image_in_shard(std::span<const uint8_t> shard, uint64_t offset, uint64_t bytes);

// As a label, where it can be one.
std::optional<uint32_t> as_label(int64_t value);
std::string label_bounds();  // "a number, 0 to N", for messages

}  // namespace lockstep::data
