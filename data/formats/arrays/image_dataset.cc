#include "data/formats/arrays/image_dataset.h"

#include <algorithm>
#include <utility>

#include "comm/base/hash.h"
#include "comm/base/limits.h"
#include "data/base/file_errors.h"
#include "data/base/look_once.h"
#include "data/dataset/content_hash.h"
#include "data/dataset/float_image.h"
#include "data/dataset/id_row.h"
#include "data/dataset/records.h"
#include "data/dataset/statistics.h"
#include "data/formats/arrays/image_fields.h"

namespace lockstep::data {
namespace {

class ImagesInRuns final : public StoredSamples, public Labels, public SampleFields {
 public:
  explicit ImagesInRuns(ImageFiles files) : files_(std::move(files)) {
    for (const ImageRun& run : files_.runs) {
      first_samples_.push_back(samples_);
      samples_ += run.samples;
    }
  }

  // Looks at all records.
  Result<DatasetFacts> facts(const std::string& cache_dir, const ProgressFn& progress) const {
    DatasetFacts facts{.samples = samples_,
                       .shape = files_.shape,
                       .format = files_.format,
                       .files = files_.paths,
                       .class_names = files_.class_names,
                       .column_names = files_.row_names,
                       .notes = {.columns = files_.columns}};
    const Result<uint32_t> classes = classes_of_labels();
    if (!classes.is_ok()) {
      LOCKSTEP_RETURN_IF_ERROR(unchanged());  // a change would explain it
      return classes.status();
    }
    facts.classes = *classes;
    for (const MappedFile& file : files_.files) file.will_need();
    Records records{files_.format,
                    samples_,
                    files_.shape,
                    {},
                    [this](uint64_t i) { return sample(i); },
                    [this](uint64_t i) { return label(i); }};
    uint64_t bytes = 0;
    for (const ImageRun& run : files_.runs) {
      records.content.push_back(run.content);
      bytes += run.content.size();
    }
    if (progress) progress("checking " + files_.paths[0], 0, bytes);
    facts.fingerprint = fingerprint_of(records);
    if (files_.shape.fields != nullptr)
      facts.fingerprint = fingerprint_with_fields(std::move(facts.fingerprint));
    LOCKSTEP_RETURN_IF_ERROR(unchanged());  // before any result is stored
    if (files_.shape.float_bytes > 0 || files_.shape.has_ids()) {
      LOCKSTEP_RETURN_IF_ERROR(look_at_values());
    } else if (files_.shape.is_row) {
      LOCKSTEP_ASSIGN_OR_RETURN(facts.statistics, statistics_of_rows(records));
    } else {
      facts.statistics = stored_statistics(facts.fingerprint, files_.shape.channels, cache_dir,
                                           [&] { return sums_of(records); });
    }
    if (progress) progress("checking " + files_.paths[0], bytes, bytes);
    LOCKSTEP_RETURN_IF_ERROR(unchanged());
    return facts;
  }

  const uint8_t* sample(uint64_t i) const override {
    const size_t r = run_of(i);
    const ImageRun& run = files_.runs[r];
    return run.first + (i - first_samples_[r]) * run.stride_bytes;
  }
  uint32_t label(uint64_t i) const override {
    const size_t r = run_of(i);
    return static_cast<uint32_t>(files_.runs[r].label(i - first_samples_[r]));
  }
  Status read_record(uint64_t i, std::byte* record) const override {
    const size_t r = run_of(i);
    const FieldList& fields = *files_.shape.fields;
    for (size_t f = 0; f < fields.specs().size(); ++f) {
      const FieldSpec& spec = fields.specs()[f];
      if (spec.is_label) continue;
      LOCKSTEP_RETURN_IF_ERROR(copy_field(files_.runs[r].fields[f], spec, i - first_samples_[r],
                                          record + fields.offset(f)));
    }
    return Status::ok();
  }
  std::optional<FileExtent> extent(uint64_t i) const override {
    return files_.files[files_.runs[run_of(i)].first_file].extent(sample(i),
                                                                  files_.shape.stored_bytes());
  }
  std::string name_of(uint64_t i) const override {
    const size_t r = run_of(i);
    const ImageRun& run = files_.runs[r];
    if (files_.shape.float_bytes > 0 || files_.shape.has_ids())
      return run.array + ", sample " + std::to_string(i - first_samples_[r]) + " (counted from 0),";
    const uint8_t* file = files_.files[run.first_file].bytes().data();
    return place_text(run.path + (run.is_inflated ? " (inflated)" : ""),
                      static_cast<uint64_t>(sample(i) - file));
  }
  std::string label_name_of(uint64_t i) const override {
    const size_t r = run_of(i);
    return files_.runs[r].labels_path + ", sample " + std::to_string(i - first_samples_[r]) +
           " (counted from 0),";
  }
  Status unchanged(std::span<const uint64_t> samples) const override {
    return look_once(
        samples, files_.runs.size(), [this](uint64_t i) { return run_of(i); },
        [this](size_t run) { return unchanged(files_.runs[run]); });
  }

 private:
  Status unchanged(const ImageRun& run) const {
    for (size_t i = 0; i < run.files; ++i)
      LOCKSTEP_RETURN_IF_ERROR(files_.files[run.first_file + i].unchanged());
    return Status::ok();
  }

  Status unchanged() const {
    for (const ImageRun& run : files_.runs) LOCKSTEP_RETURN_IF_ERROR(unchanged(run));
    return Status::ok();
  }

  size_t run_of(uint64_t sample) const {
    const auto after = std::upper_bound(first_samples_.begin(), first_samples_.end(), sample);
    return static_cast<size_t>(after - first_samples_.begin()) - 1;
  }

  std::string fingerprint_with_fields(std::string images) const {
    const FieldList& fields = *files_.shape.fields;
    std::vector<std::string> content = {std::move(images)};
    for (size_t f = 0; f < fields.specs().size(); ++f) {
      if (fields.specs()[f].is_label) continue;
      Xxh3 hash;
      for (const ImageRun& run : files_.runs)
        hash_sampled({run.fields[f].first, run.samples * run.fields[f].stride_bytes},
                     kWholeContentBytes, hash);
      content.push_back(hash.hex());
    }
    return fingerprint_of(fields, content);
  }

  // Checks values as the loader will, so that errors appear before the first step.
  Status look_at_values() const {
    const bool has_ids = files_.shape.has_ids();
    std::vector<float> image(has_ids ? 0 : files_.shape.elements());
    std::vector<int64_t> ids(has_ids ? files_.shape.elements() : 0);
    for (size_t r = 0; r < files_.runs.size(); ++r) {
      if (files_.runs[r].content.size() > kWholeContentBytes) continue;
      const uint64_t end = first_samples_[r] + files_.runs[r].samples;
      for (uint64_t i = first_samples_[r]; i < end; ++i) {
        const bool is_fine = has_ids ? read_id_row(sample(i), files_.shape, ids.data())
                                     : read_float_image(sample(i), files_.shape, image.data());
        if (is_fine) continue;
        LOCKSTEP_RETURN_IF_ERROR(unchanged());  // a change would explain it
        return has_ids ? refused_ids(name_of(i)) : refused_floats(name_of(i));
      }
    }
    return Status::ok();
  }

  Result<std::vector<ChannelStatistics>> statistics_of_rows(const Records& records) const {
    auto statistics = row_statistics(records);
    LOCKSTEP_RETURN_IF_ERROR(unchanged());  // a change would explain it
    if (!statistics.is_ok()) return about(files_.paths[0], statistics.status());
    return statistics;
  }

  Result<uint32_t> classes_of_labels() const {
    const int64_t most = files_.classes > 0 ? int64_t{files_.classes} - 1 : int64_t{limits::kLabel};
    int64_t largest = 0;
    for (const ImageRun& run : files_.runs) {
      for (uint64_t i = 0; i < run.samples; ++i) {
        const int64_t label = run.label(i);
        if (label < 0 || label > most)
          return Status(Code::kBadData, run.labels_path + " has label " + std::to_string(label) +
                                            " at sample " + std::to_string(i) +
                                            "; labels are 0 to " + std::to_string(most) +
                                            files_.advice);
        largest = std::max(largest, label);
      }
    }
    return files_.classes > 0 ? files_.classes : static_cast<uint32_t>(largest) + 1;
  }

  const ImageFiles files_;
  std::vector<uint64_t> first_samples_;  // by run
  uint64_t samples_ = 0;
};

}  // namespace

Result<std::unique_ptr<Dataset>> make_image_dataset(ImageFiles files, const std::string& cache_dir,
                                                    const ProgressFn& progress) {
  for (MappedFile& file : files.files) file.remember_content();
  LOCKSTEP_RETURN_IF_ERROR(settle_fields(&files));
  const auto images = std::make_shared<const ImagesInRuns>(std::move(files));
  LOCKSTEP_ASSIGN_OR_RETURN(DatasetFacts facts, images->facts(cache_dir, progress));
  return std::make_unique<Dataset>(std::move(facts), images);
}

}  // namespace lockstep::data
