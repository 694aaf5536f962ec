#include "data/formats/shards/shards.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "comm/base/limits.h"
#include "data/base/file_errors.h"
#include "data/base/thread_team.h"
#include "data/files/inflate_cache.h"
#include "data/files/list_files.h"
#include "data/files/mapped_file.h"
#include "data/files/split_directory.h"
#include "data/formats/images/look_at_image.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

struct LookedAt {
  std::vector<Extent> samples;
  IndexContent::Path file;
  SourceNotes notes;
};

// The whole shard. A shard that is far away is fetched into a file that is gone when it is no
// longer mapped.
Result<MappedFile> open_shard(const Shards& shards, const std::string& path) {
  if (shards.far == nullptr || !shards.far->has_only_place(path)) return MappedFile::open(path);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string copy, shards.far->copy_of(path));
  auto file = MappedFile::open(copy);
  std::error_code ignored;
  fs::remove(copy, ignored);
  return file;
}

Status look_at_shard(const Shards& shards, size_t i, const ReadShardFn& read, LookedAt& out) {
  const std::string path = shards.directory + "/" + shards.names[i];
  LOCKSTEP_ASSIGN_OR_RETURN(out.file, stamp_of(shards.directory, shards.names[i]));
  LOCKSTEP_ASSIGN_OR_RETURN(const MappedFile file, open_shard(shards, path));
  auto samples = read(i, content_of(file.bytes(), shards.copied.contains(i)), out.notes);
  LOCKSTEP_RETURN_IF_ERROR(file.unchanged());  // a change would explain it
  if (!samples.is_ok()) return about(shown_name(path, shards.copied, i), samples.status());
  out.samples = std::move(*samples);
  return Status::ok();
}

Result<std::vector<std::string>> shards_in(const std::string& directory, const IsShardFn& is_shard,
                                           ShardNames taken) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<std::string> all, list_data_files(directory));
  std::vector<std::string> names = all;
  std::erase_if(names, [&](const std::string& name) { return !is_shard(directory + "/" + name); });
  return names.empty() && taken == ShardNames::kAny ? all : names;
}

Status no_samples(const Shards& shards, const FilesLeftOut& left) {
  const std::string others = left_out_text(left);
  return bad(shards.shown_directory() + "/" + shards.names[0] +
             (shards.names.size() > 1 ? " and the shards with it" : "") +
             " hold no sample with an image" +
             (others.empty() ? "" : " (they have " + others + ")"));
}

}  // namespace

Result<Shards> find_shards(const std::string& path, Split split, const std::string& what,
                           const IsShardFn& is_shard, ShardNames taken) {
  std::error_code error;
  Shards shards;
  if (!fs::is_directory(path, error)) {
    if (!fs::exists(path, error)) return Status(Code::kNoInput, "data " + path + " is not there");
    shards.directory = fs::path(path).parent_path().string();
    if (shards.directory.empty()) shards.directory = ".";
    shards.names = {fs::path(path).filename().string()};
    return shards;
  }
  const bool has_splits = has_split_directories(path);
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<std::string> names,
                            shards_in(path, is_shard, has_splits ? ShardNames::kKnown : taken));
  if (names.empty() && has_splits) {
    shards.directory = split_directory(path, split);
    LOCKSTEP_ASSIGN_OR_RETURN(shards.names, shards_in(shards.directory, is_shard, taken));
    if (!shards.names.empty()) return shards;
    return Status(Code::kNoInput, shards.directory + " has no " + what);
  }
  if (names.empty()) return Status(Code::kNoInput, path + " has no " + what);
  const std::vector<std::string> all = names;
  std::erase_if(names, [&](const std::string& name) {
    return is_for_evaluation(name, all) != (split == Split::kEval);
  });
  if (names.empty())
    return Status(Code::kNoInput, path + " has no " + what +
                                      (split == Split::kEval ? " with val, test or eval in its name"
                                                             : " other than those for evaluation"));
  shards.directory = path;
  shards.names = std::move(names);
  return shards;
}

Result<IndexContent> look_at_shards(const Shards& shards, const ReadShardFn& read, uint32_t threads,
                                    const ProgressFn& progress, DamagedFiles& damaged) {
  IndexContent content;
  for (const std::string& name : shards.sources) {
    LOCKSTEP_ASSIGN_OR_RETURN(IndexContent::Path stamp, stamp_of(shards.directory, name));
    content.sources.push_back(std::move(stamp));
  }
  std::vector<LookedAt> looked(shards.names.size());
  LOCKSTEP_ASSIGN_OR_RETURN(const auto team, ThreadTeam::start(threads, "index"));
  ProgressOfMany shown("looking at the shards of " + shards.shown_directory(), looked.size(),
                       progress);
  DamagedFiles found_damaged;
  LOCKSTEP_RETURN_IF_ERROR(team->run(looked.size(), [&](uint32_t thread, uint64_t i) {
    Status status = look_at_shard(shards, i, read, looked[i]);
    shown.one_done(thread);
    return found_damaged.take(i, std::move(status));
  }));
  uint32_t largest = 0;
  for (LookedAt& shard : looked) {
    content.notes.left_out.add(shard.notes.left_out);
    if (content.notes.columns.label.empty()) content.notes.columns = shard.notes.columns;
    for (Extent& extent : shard.samples) {
      extent.file = static_cast<uint32_t>(content.files.size());
      largest = std::max(largest, extent.label);
      content.extents.push_back(extent);
    }
    content.sources.push_back(shard.file);
    content.files.push_back(std::move(shard.file));
  }
  LOCKSTEP_RETURN_IF_ERROR(leave_out_damaged(found_damaged, damaged, content));
  if (content.extents.empty()) return no_samples(shards, content.notes.left_out);
  LOCKSTEP_RETURN_IF_ERROR(
      check_left_out(shards.shown_directory(), content.notes.left_out, content.extents.size()));
  for (uint32_t label = 0; label <= largest; ++label)
    content.classes.push_back(std::to_string(label));
  return content;
}

Result<Extent> image_in_shard(std::span<const uint8_t> shard, uint64_t offset, uint64_t bytes,
                              PictureKind kind) {
  if (bytes > limits::kEncodedBytes)
    return bad("has " + std::to_string(bytes) + " bytes; an image may have at most " +
               std::to_string(limits::kEncodedBytes));
  Extent extent;
  extent.offset = offset;
  extent.bytes = static_cast<uint32_t>(bytes);
  LOCKSTEP_RETURN_IF_ERROR(describe_image(shard.subspan(offset, bytes), extent, kind));
  return extent;
}

std::optional<uint32_t> as_label(int64_t value) {
  if (value < 0 || value > int64_t{limits::kLabel}) return std::nullopt;
  return static_cast<uint32_t>(value);
}

std::string label_bounds() {
  return "a number, 0 to " + std::to_string(limits::kLabel);
}

}  // namespace lockstep::data
