#include "data/index/idx_dataset.h"

#include <algorithm>
#include <utility>

#include "comm/base/limits.h"
#include "data/index/gzip.h"
#include "data/index/idx_header.h"
#include "data/index/inflate_cache.h"
#include "data/index/mapped_file.h"
#include "data/index/records.h"

namespace lockstep::data {
namespace {

struct IdxFile {
  MappedFile file;
  IdxHeader header;
  const uint8_t* content() const { return file.bytes().data() + header.header_bytes; }
};

Status about(const std::string& path, const Status& status) {
  return Status(status.code(), path + " " + status.message());
}

Result<IdxFile> open_idx_file(const std::string& path, const std::string& cache_dir,
                              const ProgressFn& progress) {
  LOCKSTEP_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
  uint64_t bytes = file.bytes().size();
  if (is_gzip(file.bytes())) {
    LOCKSTEP_ASSIGN_OR_RETURN(MappedFile inflated, open_inflated(path, file, cache_dir, progress));
    file = std::move(inflated);
    bytes = file.bytes().size() - kTrailerBytes;
  }
  const auto head = file.bytes().first(std::min<uint64_t>(bytes, limits::kIdxHeaderBytes));
  auto header = parse_idx_header(head);
  if (!header.is_ok()) return about(path, header.status());
  const uint64_t wanted = header->file_bytes();
  if (bytes != wanted)
    return Status(Code::kBadData, path + (bytes < wanted ? " is truncated: it has " : " has ") +
                                      std::to_string(bytes) + " bytes, its header promises " +
                                      std::to_string(wanted));
  return IdxFile{std::move(file), std::move(header).value()};
}

class IdxDataset final : public Dataset {
 public:
  IdxDataset(IdxFile images, IdxFile labels, SampleShape shape, std::vector<std::string> files)
      : images_(std::move(images)),
        labels_(std::move(labels)),
        shape_(shape),
        elements_(shape.elements()),
        content_(images_.content()),
        files_(std::move(files)) {}

  // Everything that needs a look at all records. `labels_path` for messages.
  Status examine(const std::string& labels_path, const std::string& cache_dir,
                 const ProgressFn& progress) {
    int64_t largest = 0;
    for (uint64_t i = 0; i < samples(); ++i) {
      const int64_t label = label_at(labels_.header, labels_.content(), i);
      if (label < 0 || label > int64_t{limits::kLabel})
        return Status(Code::kBadData, labels_path + " has label " + std::to_string(label) +
                                          " at sample " + std::to_string(i) + "; labels are 0 to " +
                                          std::to_string(limits::kLabel));
      largest = std::max(largest, label);
    }
    classes_ = static_cast<uint32_t>(largest) + 1;
    images_.file.will_need();
    const Records records{format_, samples(), shape_, std::span(content_, samples() * elements_),
                          [this](uint64_t i) { return label(i); }};
    if (progress) progress("checking " + files_[0], 0, records.pixels.size());
    fingerprint_ = fingerprint_of(records);
    statistics_ = stored_statistics(records, fingerprint_, cache_dir);
    if (progress) progress("checking " + files_[0], records.pixels.size(), records.pixels.size());
    return Status::ok();
  }

  uint64_t samples() const override { return images_.header.dims[0]; }
  SampleShape shape() const override { return shape_; }
  uint32_t classes() const override { return classes_; }
  const std::string& format() const override { return format_; }
  const std::string& fingerprint() const override { return fingerprint_; }
  const std::vector<ChannelStatistics>& statistics() const override { return statistics_; }
  const std::vector<std::string>& files() const override { return files_; }
  const uint8_t* sample(uint64_t i) const override { return content_ + i * elements_; }
  uint32_t label(uint64_t i) const override {
    return static_cast<uint32_t>(label_at(labels_.header, labels_.content(), i));
  }

 private:
  IdxFile images_;
  IdxFile labels_;
  SampleShape shape_;
  uint64_t elements_;
  const uint8_t* content_;
  std::vector<std::string> files_;
  std::string format_ = "idx";
  uint32_t classes_ = 0;
  std::string fingerprint_;
  std::vector<ChannelStatistics> statistics_;
};

}  // namespace

Result<std::unique_ptr<Dataset>> open_idx_dataset(const IdxPair& pair, const std::string& cache_dir,
                                                  const ProgressFn& progress) {
  LOCKSTEP_ASSIGN_OR_RETURN(IdxFile labels, open_idx_file(pair.labels, cache_dir, progress));
  LOCKSTEP_ASSIGN_OR_RETURN(IdxFile images, open_idx_file(pair.images, cache_dir, progress));
  const auto shape = image_shape(images.header);
  if (!shape.is_ok()) return about(pair.images, shape.status());
  if (const Status status = check_label_header(labels.header); !status.is_ok())
    return about(pair.labels, status);
  if (images.header.dims[0] != labels.header.dims[0])
    return Status(Code::kBadData, pair.images + " holds " + std::to_string(images.header.dims[0]) +
                                      " images, but " + pair.labels + " holds " +
                                      std::to_string(labels.header.dims[0]) +
                                      " labels; they do not belong together");
  auto dataset = std::make_unique<IdxDataset>(std::move(images), std::move(labels), shape.value(),
                                              std::vector<std::string>{pair.images, pair.labels});
  LOCKSTEP_RETURN_IF_ERROR(dataset->examine(pair.labels, cache_dir, progress));
  return std::unique_ptr<Dataset>(std::move(dataset));
}

}  // namespace lockstep::data
