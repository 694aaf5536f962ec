// Sets of shards: files that hold many encoded samples each. This file has what all formats of
// shards share. The file of a format's name reads one shard of the format.
//
// Lockstep reads shards in the order of their names' bytes. A directory for each split
// (split_directory.h) tells which are for evaluation. Else the names do: val, valid, validation,
// test or eval is a word of the name (list_files.h).
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
#include "data/formats/images/look_at_image.h"
#include "data/source/far_files/remote_files.h"

namespace lockstep::data {

// A shard compressed as a whole, so no sample of the shard can be read by itself.
struct PackedShard {
  WholeCodec codec = WholeCodec::kNone;
  std::string file;                    // the shard's name, within the directory
  std::optional<uint64_t> bytes;       // inflated, if an index says it
  std::optional<uint64_t> file_bytes;  // of the file itself, if an index says it
};

struct Shards {
  std::string directory;
  std::vector<std::string> names;            // within it, sorted
  std::vector<std::string> sources;          // within it, other files that describe the shards
  std::shared_ptr<source::RemoteFiles> far;  // has the shards' content; null: they are local
  // By index in `names`, which holds the names of the inflated forms (packed_shards.h).
  std::map<size_t, PackedShard> packed = {};
  // For copies in a cache. `home`: where the data set really is. `copied`: the source of each copy
  // that ends with a trailer (inflate_cache.h), by index in `names`.
  std::string home = {};
  std::map<size_t, std::string> copied = {};

  // For messages.
  const std::string& shown_directory() const { return home.empty() ? directory : home; }
};

// Returns the files of this split in a directory that `is_shard` accepts, or the single file
// `path`, which serves either split. kNoInput if there is none; the message says `what` there
// should be. kAny: if `is_shard` accepts no file of the directory, returns all files that are not
// hidden, since the job named the format.
enum class ShardNames { kKnown, kAny };
using IsShardFn = std::function<bool(const std::string& path)>;
Result<Shards> find_shards(const std::string& path, Split split, const std::string& what,
                           const IsShardFn& is_shard, ShardNames taken = ShardNames::kKnown);

// The samples of the i-th shard, whose content is `bytes`; it does not set their `file`. Adds what
// else there is to say to `notes`. kBadData: the message goes on after the shard's name. Any
// thread.
using ReadShardFn = std::function<Result<std::vector<Extent>>(
    size_t i, std::span<const uint8_t> bytes, SourceNotes& notes)>;

// Looks at several shards at a time; returns everything but the fingerprint. Errors as
// open_dataset(), naming shard and sample. kBadData if all shards together have no sample.
// `damaged`: EncodedSource::look.
Result<IndexContent> look_at_shards(const Shards& shards, const ReadShardFn& read, uint32_t threads,
                                    const ProgressFn& progress, DamagedFiles& damaged);

// The image in `bytes` bytes from `offset` on of its shard, without its label. kBadData: the
// message goes on after the image's name with "is an image of ..., " or with another fault.
// REQUIRES: the image lies within the shard.
Result<Extent> image_in_shard(std::span<const uint8_t> shard, uint64_t offset, uint64_t bytes,
                              PictureKind kind = PictureKind::kImage);

// The value as a label; empty if it cannot be a label.
std::optional<uint32_t> as_label(int64_t value);
std::string label_bounds();  // "a number, 0 to N", for messages

}  // namespace lockstep::data
