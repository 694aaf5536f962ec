#include "data/formats/images/encoded_dataset.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "comm/base/file.h"
#include "comm/base/hash.h"
#include "data/base/one_at_a_time.h"
#include "data/base/read_at.h"
#include "data/base/thread_team.h"
#include "data/dataset/content_hash.h"
#include "data/dataset/statistics.h"
#include "data/formats/images/encoded_files.h"
#include "data/formats/images/encoded_records.h"
#include "data/image/image_decoder.h"
#include "data/source/view/remote_files.h"

namespace lockstep::data {
namespace {

constexpr uint32_t kMostIndexThreads = 16;  // that look at a data set which is new

uint32_t threads_to_look() {
  return std::clamp(usable_processors(), 1U, kMostIndexThreads);
}

// One index for one directory: machines that have their own copies at the same place tell them
// apart by the directory's number and time.
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
  return cache_dir + "/" + source.format + "." + xxh3_hex(what.data(), what.size()).substr(0, 16) +
         ".index";
}

Status make_index(const EncodedSource& source, const std::string& path,
                  const ProgressFn& progress) {
  const uint32_t threads = threads_to_look();
  LOCKSTEP_ASSIGN_OR_RETURN(IndexContent content, source.look(threads));
  LOCKSTEP_ASSIGN_OR_RETURN(content.fingerprint,
                            fingerprint_of(content, source.directory, threads, progress,
                                           kWholeContentBytes, source.far.get()));
  return write_extent_index(path, content);
}

Status differ_in_size(const EncodedSource& source, const Extent& a, const Extent& b) {
  const auto sides = [](const Extent& e) {
    return std::to_string(e.width) + " x " + std::to_string(e.height);
  };
  return {Code::kUsage, source.shown_directory + " has images of " + sides(a) + " and of " +
                            sides(b) +
                            " pixels, and a model sees one size; begin data.transforms with "
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

class EncodedDataset final : public Dataset {
 public:
  EncodedDataset(const EncodedSource& source, ExtentIndex index)
      : index_(std::move(index)),
        source_files_(index_, source.directory, source.far, source.copied),
        format_(source.format),
        has_class_names_(source.has_class_names),
        fingerprint_(index_.fingerprint()),
        files_{source.shown_directory} {}

  Status measure(const WantedImage& wanted, const std::string& cache_dir,
                 const ProgressFn& progress) {
    wanted_ = wanted;
    const std::string frame = to_text(wanted.frame);
    Status failure;
    statistics_ = stored_statistics(
        fingerprint_ + (frame.empty() ? "" : "-" + frame), wanted.channels, cache_dir, [&] {
          auto sums = sums_of(index_, source_files_, wanted, threads_to_look(), progress);
          if (!sums.is_ok()) failure = sums.status();
          return sums.is_ok() ? *sums : std::vector<ChannelSums>();
        });
    return failure;
  }

  uint64_t samples() const override { return index_.samples(); }
  SampleShape shape() const override { return {wanted_.channels, wanted_.height, wanted_.width}; }
  uint32_t classes() const override { return static_cast<uint32_t>(index_.classes()); }
  const std::string& format() const override { return format_; }
  const std::string& fingerprint() const override { return fingerprint_; }
  const std::vector<ChannelStatistics>& statistics() const override { return statistics_; }
  const std::vector<std::string>& files() const override { return files_; }
  std::vector<std::string> class_names() const override {
    std::vector<std::string> names;
    if (!has_class_names_) return names;
    for (uint64_t i = 0; i < index_.classes(); ++i) names.emplace_back(index_.class_name(i));
    return names;
  }

  const uint8_t* sample(uint64_t) const override { return nullptr; }
  uint32_t label(uint64_t i) const override { return index_.extent(i).label; }
  std::optional<FileExtent> extent(uint64_t i) const override {
    if (far() != nullptr) return std::nullopt;
    return source_files_.at(index_.extent(i));
  }
  Status unchanged(std::span<const uint64_t>) const override { return Status::ok(); }

  const WantedImage* encoded_form() const override { return &wanted_; }
  Status read_encoded(uint64_t i, std::vector<uint8_t>& out) const override {
    return source_files_.read(index_.extent(i), out);
  }
  uint64_t announce(uint64_t i) const override {
    source_files_.announce(index_.extent(i));
    return index_.extent(i).bytes;
  }
  const source::RemoteFiles* far() const override { return source_files_.far(); }
  std::string name_of(uint64_t i) const override { return source_files_.name_of(index_.extent(i)); }

 private:
  ExtentIndex index_;
  EncodedFiles source_files_;
  std::string format_;
  bool has_class_names_;
  std::string fingerprint_;
  std::vector<std::string> files_;
  WantedImage wanted_;
  std::vector<ChannelStatistics> statistics_;
};

}  // namespace

Result<ExtentIndex> open_index(const EncodedSource& source, const std::string& cache_dir,
                               const ProgressFn& progress) {
  if (cache_dir.empty())
    return Status(Code::kUsage, "no cache directory for the index of " + source.shown_directory +
                                    "; set data.cache_dir");
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string path, index_path(source, cache_dir));
  if (auto index = ExtentIndex::open(path, source.directory); index.is_ok()) return index;
  std::error_code error;
  std::filesystem::create_directories(cache_dir, error);
  const OneAtATime alone(path);
  if (auto index = ExtentIndex::open(path, source.directory); index.is_ok()) return index;
  LOCKSTEP_RETURN_IF_ERROR(make_index(source, path, progress));
  auto made = ExtentIndex::open(path, source.directory);
  if (made.is_ok() || made.status().code() != Code::kBadData) return made;
  return Status(Code::kBadData, made.status().message() + ": " + source.shown_directory +
                                    " changes while it is looked at; begin when it is complete");
}

Result<std::unique_ptr<Dataset>> open_encoded_dataset(const EncodedSource& source,
                                                      const ImageFrame& frame,
                                                      const std::string& cache_dir,
                                                      const ProgressFn& progress) {
  LOCKSTEP_ASSIGN_OR_RETURN(ExtentIndex index, open_index(source, cache_dir, progress));
  LOCKSTEP_ASSIGN_OR_RETURN(const WantedImage wanted, wanted_of(source, index, frame));
  auto dataset = std::make_unique<EncodedDataset>(source, std::move(index));
  LOCKSTEP_RETURN_IF_ERROR(dataset->measure(wanted, cache_dir, progress));
  return std::unique_ptr<Dataset>(std::move(dataset));
}

}  // namespace lockstep::data
