#include "data/formats/images/encoded_dataset.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "comm/base/file.h"
#include "comm/base/hash.h"
#include "data/base/modified_ns.h"
#include "data/base/one_at_a_time.h"
#include "data/base/thread_team.h"
#include "data/dataset/content_hash.h"
#include "data/dataset/statistics.h"
#include "data/files/cached_text.h"
#include "data/formats/images/encoded_files.h"
#include "data/formats/images/encoded_records.h"
#include "data/formats/images/index_marks.h"
#include "data/formats/images/indexed_masks.h"
#include "data/image/image_decoder.h"
#include "data/source/far_files/remote_files.h"

namespace lockstep::data {
namespace {

constexpr uint32_t kMostIndexThreads = 16;  // that look at a data set which is new

uint32_t threads_to_look() {
  return std::clamp(usable_processors(), 1U, kMostIndexThreads);
}

// One index for one directory. Machines with copies of their own at the same path tell them apart
// by the directory's inode and time.
Result<std::string> index_path(const EncodedSource& source, const std::string& cache_dir) {
  struct stat root {};
  if (::stat(source.directory.c_str(), &root) != 0)
    return Status(Code::kNoInput,
                  "cannot read directory " + source.directory + ": " + errno_text(errno));
  std::error_code error;
  const auto whole = std::filesystem::weakly_canonical(source.directory, error);
  std::string what = source.format + "\n" + whole.native() + "\n" + std::to_string(root.st_ino) +
                     "\n" + std::to_string(modified_ns(root));
  for (const std::string& name : source.names) what += "\n" + name;
  if (!source.columns.input.empty() || !source.columns.label.empty())
    what += "\n\n" + source.columns.input + "\n" + source.columns.label;
  if (!source.variant.empty()) what += "\n\n\n" + source.variant;
  return cache_dir + "/" + source.format + "." + xxh3_hex(what.data(), what.size()).substr(0, 16) +
         ".index";
}

// The sound files if some are damaged, and the damage.
struct SoundFiles {
  IndexContent content;
  DamagedFiles damaged;
};

// `kept`: the fingerprint of the existing index, or empty. If only times changed, a cache that
// cannot be written does not matter.
Status make_index(const EncodedSource& source, const std::string& path, const std::string& kept,
                  const ProgressFn& progress, SoundFiles& sound) {
  const uint32_t threads = threads_to_look();
  auto looked = source.look(threads, sound.damaged);
  if (!sound.damaged.empty()) {
    if (looked.is_ok()) sound.content = std::move(*looked);
    return sound.damaged.status();
  }
  LOCKSTEP_ASSIGN_OR_RETURN(IndexContent content, std::move(looked));
  LOCKSTEP_ASSIGN_OR_RETURN(content.fingerprint,
                            fingerprint_of(content, source.directory, threads, progress,
                                           kWholeContentBytes, source.far.get()));
  const Status written = write_extent_index(path, content);
  return content.fingerprint == kept ? Status::ok() : written;
}

// An existing index.
struct Found {
  ExtentIndex index;
  std::string marks = {};   // of its files as they are now; empty: they tell nothing
  bool is_touched = false;  // since the index was made, and another look at the content tells
};

std::string note_of(const std::string& index_path) {
  return std::filesystem::path(index_path).filename().string() + ".marks";
}

Result<Found> find_index(const EncodedSource& source, const std::string& path,
                         const std::string& cache_dir) {
  LOCKSTEP_ASSIGN_OR_RETURN(ExtentIndex index, ExtentIndex::open(path, source.directory));
  Found found{std::move(index)};
  if (source.far != nullptr) return found;
  LOCKSTEP_ASSIGN_OR_RETURN(IndexMarks now,
                            look_at_files(found.index, source.directory, threads_to_look()));
  found.index.set_marks(std::move(now.marks));
  if (now.text.empty() || !covers_all_content(found.index)) return found;
  found.is_touched = cached_text(cache_dir, note_of(path)) != now.text;
  found.marks = std::move(now.text);
  return found;
}

Status differ_in_size(const EncodedSource& source, const Extent& a, const Extent& b) {
  const auto sides = [](const Extent& e) {
    return std::to_string(e.width) + " x " + std::to_string(e.height);
  };
  return {Code::kUsage, source.shown_directory + " has images of " + sides(a) + " and of " +
                            sides(b) +
                            " pixels, but a model takes one size; begin data.transforms with "
                            "random_resized_crop=224, or with resize=256 and center_crop=224"};
}

Result<WantedImage> wanted_of(const EncodedSource& source, const ExtentIndex& index,
                              const ImageFrame& frame) {
  const Extent& first = index.extent(0);
  WantedImage wanted{frame, frame.size, frame.size, 1};
  if (frame.is_empty()) wanted = {frame, first.width, first.height, 1};
  for (uint64_t i = 0; i < index.samples(); ++i) {
    const Extent& extent = index.extent(i);
    if (extent.channels == 3) wanted.channels = 3;
    if (frame.is_empty() && (extent.width != first.width || extent.height != first.height))
      return differ_in_size(source, first, extent);
  }
  return wanted;
}

// REQUIRES: sums_of() has run. It does not decode all of a large data set.
Status damage_of(const ExtentIndex& index, const DamagedFiles& damaged) {
  Status status = damaged.status();
  if (status.is_ok() || index.samples() <= kStatisticsImages) return status;
  return {status.code(), status.message() + "\n" + std::to_string(kStatisticsImages) + " of " +
                             std::to_string(index.samples()) +
                             " images were decoded; lockstep data verify decodes all"};
}

// `index` has the files that are not in `damaged`. Returns all damage that indexes and statistics
// show; ok if there is none.
Status all_damage(const EncodedSource& source, const ExtentIndex& index, const ImageFrame& frame,
                  const std::string& cache_dir, const ProgressFn& progress, DamagedFiles& damaged) {
  auto wanted = wanted_of(source, index, frame);
  if (!wanted.is_ok()) wanted = wanted_of(source, index, {CropKind::kCenter, 224, 256});
  const EncodedFiles files(index, source.directory, source.far, source.copied);
  const auto sums = sums_of(index, files, *wanted, threads_to_look(), progress, damaged);
  Status status = sums.is_ok() ? damage_of(index, damaged) : damaged.status();
  for (const EncodedSource& mask : source.masks)
    status = joined_damage(status, open_index(mask, cache_dir, progress).status());
  return status;
}

class IndexedImages : public EncodedImages {
 public:
  IndexedImages(const EncodedSource& source, ExtentIndex index, WantedImage wanted)
      : index_(std::move(index)),
        files_(index_, source.directory, source.far, source.copied),
        wanted_(wanted) {}

  Result<DatasetFacts> facts(const EncodedSource& source, const std::string& cache_dir,
                             const ProgressFn& progress) const {
    DatasetFacts facts{.samples = index_.samples(),
                       .shape = {wanted_.channels, wanted_.height, wanted_.width},
                       .classes = static_cast<uint32_t>(index_.classes()),
                       .format = source.format,
                       .fingerprint = std::string(index_.fingerprint()),
                       .files = {source.shown_directory},
                       .notes = index_.notes()};
    for (uint64_t i = 0; i < index_.samples(); ++i)
      facts.notes.sizes.add(index_.extent(i).width, index_.extent(i).height);
    if (source.has_class_names)
      for (uint64_t i = 0; i < index_.classes(); ++i)
        facts.class_names.emplace_back(index_.class_name(i));
    if (source.far != nullptr) facts.far.push_back(source.far);
    const std::string frame = to_text(wanted_.frame);
    DamagedFiles damaged;
    Status failure;
    facts.statistics = stored_statistics(
        facts.fingerprint + (frame.empty() ? "" : "-" + frame), wanted_.channels, cache_dir, [&] {
          auto sums = sums_of(index_, files_, wanted_, threads_to_look(), progress, damaged);
          failure = sums.is_ok() ? damage_of(index_, damaged) : sums.status();
          return failure.is_ok() ? *sums : std::vector<ChannelSums>();
        });
    LOCKSTEP_RETURN_IF_ERROR(failure);
    return facts;
  }

  const WantedImage& wanted() const override { return wanted_; }
  uint32_t label(uint64_t i) const override { return index_.extent(i).label; }
  Status read_encoded(uint64_t i, std::vector<uint8_t>& out) const override {
    return files_.read(i, out);
  }
  std::optional<FileExtent> extent(uint64_t i) const override {
    if (files_.far() != nullptr) return std::nullopt;
    return files_.at(i);
  }
  uint64_t announce(uint64_t i) const override {
    if (files_.far() == nullptr) return 0;
    files_.announce(index_.extent(i));
    return index_.extent(i).bytes;
  }
  std::string name_of(uint64_t i) const override { return files_.name_of(index_.extent(i)); }
  // Nothing to do: each read checks its own file.
  Status unchanged(std::span<const uint64_t>) const override { return Status::ok(); }

 private:
  const ExtentIndex index_;
  const EncodedFiles files_;
  const WantedImage wanted_;
};

using MaskList = std::vector<std::shared_ptr<const IndexedMasks>>;

class MaskedImages final : public IndexedImages, public SampleFields, public SampleMasks {
 public:
  MaskedImages(const EncodedSource& source, ExtentIndex index, WantedImage wanted, MaskList masks)
      : IndexedImages(source, std::move(index), wanted), masks_(std::move(masks)) {}

  // The record has only masks: the label has no bytes there.
  Status read_record(uint64_t, std::byte*) const override { return Status::ok(); }
  Status read_mask(uint64_t i, size_t mask, std::vector<uint8_t>& out) const override {
    return masks_[mask]->read(i, out);
  }
  std::string mask_name(uint64_t i, size_t mask) const override { return masks_[mask]->name_of(i); }
  uint64_t announce(uint64_t i) const override {
    uint64_t bytes = IndexedImages::announce(i);
    for (const auto& masks : masks_) bytes += masks->announce(i);
    return bytes;
  }

 private:
  const MaskList masks_;
};

// Adds fields and masks to the facts of the images.
void add_fields(const EncodedSource& source, const MaskList& masks, DatasetFacts& facts) {
  std::vector<FieldSpec> specs = source.fields;
  for (FieldSpec& spec : specs)
    if (spec.follows_image) spec.dims = {facts.shape.height, facts.shape.width};
  facts.shape.fields = std::make_shared<const FieldList>(std::move(specs));
  std::vector<std::string> content = {facts.fingerprint};
  for (size_t i = 0; i < masks.size(); ++i) {
    content.emplace_back(masks[i]->fingerprint());
    if (!source.joins_by_stem) continue;
    facts.files.push_back(source.masks[i].shown_directory);
    facts.notes.left_out.add(masks[i]->notes().left_out);
  }
  facts.fingerprint = fingerprint_of(*facts.shape.fields, content);
}

// As open_index(). An error for damaged files leaves the others in `sound`.
Result<ExtentIndex> open_or_leave(const EncodedSource& source, const std::string& cache_dir,
                                  const ProgressFn& progress, IndexUse use, SoundFiles& sound) {
  if (cache_dir.empty())
    return Status(Code::kUsage, "no cache directory for the index of " + source.shown_directory +
                                    "; set data.cache_dir");
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string path, index_path(source, cache_dir));
  const auto find = [&] { return find_index(source, path, cache_dir); };
  const auto is_valid = [&](const Result<Found>& found) {
    return found.is_ok() && !found->is_touched && use == IndexUse::kValid;
  };
  if (auto found = find(); is_valid(found)) return std::move(found->index);
  std::error_code error;
  std::filesystem::create_directories(cache_dir, error);
  const OneAtATime alone(path);
  auto kept = find();
  if (is_valid(kept)) return std::move(kept->index);
  const std::string fingerprint(kept.is_ok() ? kept->index.fingerprint() : std::string_view());
  LOCKSTEP_RETURN_IF_ERROR(make_index(source, path, fingerprint, progress, sound));
  auto made = find();
  if (made.is_ok()) {
    if (!made->marks.empty()) keep_text(cache_dir, note_of(path), made->marks);
    return std::move(made->index);
  }
  if (made.status().code() != Code::kBadData) return made.status();
  return Status(Code::kBadData,
                made.status().message() + ": " + source.shown_directory +
                    " changed while Lockstep indexed it; start again when it is complete");
}

}  // namespace

Result<ExtentIndex> open_index(const EncodedSource& source, const std::string& cache_dir,
                               const ProgressFn& progress, IndexUse use) {
  SoundFiles unused;
  return open_or_leave(source, cache_dir, progress, use, unused);
}

Result<ExtentIndex> open_sound_index(const EncodedSource& source, const std::string& cache_dir,
                                     const ProgressFn& progress, DamagedFiles& damaged) {
  SoundFiles sound;
  auto whole = open_or_leave(source, cache_dir, progress, IndexUse::kValid, sound);
  if (whole.is_ok() || sound.content.extents.empty()) return whole;
  sound.content.fingerprint = std::string(32, '0');
  LOCKSTEP_ASSIGN_OR_RETURN(std::string path, index_path(source, cache_dir));
  path += ".tmp." + std::to_string(::getpid());  // not kept
  if (!write_extent_index(path, sound.content).is_ok()) return whole;
  auto index = ExtentIndex::open(path, source.directory);
  ::unlink(path.c_str());
  const uint64_t samples = sound.content.extents.size();
  for (const auto& [i, message] : sound.damaged.messages())
    LOCKSTEP_RETURN_IF_ERROR(damaged.take(samples + i, {Code::kBadData, message}));
  return index;
}

Result<std::unique_ptr<Dataset>> open_encoded_dataset(const EncodedSource& source,
                                                      const ImageFrame& frame,
                                                      const std::string& cache_dir,
                                                      const ProgressFn& progress) {
  DamagedFiles damaged;
  LOCKSTEP_ASSIGN_OR_RETURN(ExtentIndex index,
                            open_sound_index(source, cache_dir, progress, damaged));
  if (!damaged.empty()) return all_damage(source, index, frame, cache_dir, progress, damaged);
  LOCKSTEP_ASSIGN_OR_RETURN(const WantedImage wanted, wanted_of(source, index, frame));
  MaskList masks;
  for (size_t i = 0; i < source.masks.size(); ++i) {
    auto mask = IndexedMasks::open(source, i, index, cache_dir, progress);
    if (mask.status().code() == Code::kBadData) {
      const Status all = all_damage(source, index, frame, cache_dir, progress, damaged);
      return all.is_ok() ? mask.status() : all;
    }
    if (!mask.is_ok()) return mask.status();
    masks.push_back(std::move(*mask));
  }
  std::shared_ptr<const IndexedImages> images;
  if (masks.empty())
    images = std::make_shared<const IndexedImages>(source, std::move(index), wanted);
  else
    images = std::make_shared<const MaskedImages>(source, std::move(index), wanted, masks);
  LOCKSTEP_ASSIGN_OR_RETURN(DatasetFacts facts, images->facts(source, cache_dir, progress));
  if (!source.fields.empty()) add_fields(source, masks, facts);
  return std::make_unique<Dataset>(std::move(facts), images);
}

}  // namespace lockstep::data
