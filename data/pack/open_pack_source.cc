#include "data/pack/open_pack_source.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>

#include "comm/base/limits.h"
#include "comm/run/job/data_formats.h"
#include "comm/run/job/job.pb.h"
#include "data/formats/arrow/arrow_choice.h"
#include "data/formats/images/encoded_dataset.h"
#include "data/formats/images/encoded_files.h"
#include "data/formats/images/encoded_source.h"
#include "data/formats/tokens/open_tokens.h"
#include "data/formats/tokens/token_format.h"
#include "data/formats/tokens/token_stream.h"
#include "data/formats/tokens/tokenized_text.h"
#include "data/open/detect_format.h"
#include "data/open/formats.h"
#include "data/open/open_dataset.h"
#include "data/pack/token_source.h"

namespace lockstep::data {
namespace {

constexpr char kImage[] = "image";
constexpr char kRow[] = "features";
constexpr char kLabel[] = "label";
constexpr uint32_t kLabelBytes = 8;

void append_label(uint64_t label, std::string& out) {
  out.append(reinterpret_cast<const char*>(&label), kLabelBytes);
}

std::vector<std::string> numbered(uint64_t classes) {
  std::vector<std::string> names;
  for (uint64_t i = 0; i < classes; ++i) names.push_back(std::to_string(i));
  return names;
}

// The field of a sample as it is stored. `names`: of the values of a row.
ArrowField stored_field(const SampleShape& shape, const std::vector<std::string>& names) {
  ArrowField field;
  field.name = shape.is_row ? kRow : kImage;
  field.kind = ArrowKind::kFixedList;
  field.width = static_cast<uint32_t>(shape.elements());
  field.children = {shape.is_row ? arrow_float32("item") : arrow_int("item", 1, false)};
  field.metadata = shape.is_row ? row_metadata(names) : shape_metadata(shape);
  return field;
}

// Images and rows, each with its label, or with the fields that a job names of a table.
class PixelSource final : public PackSource {
 public:
  PixelSource(std::unique_ptr<Dataset> dataset, uint64_t shard_bytes, bool names_targets)
      : dataset_(std::move(dataset)),
        pixels_(dataset_->as<StoredSamples>().value()),
        labels_(dataset_->as<Labels>().value()),
        fields_(dataset_->as<SampleFields>()),
        bytes_(dataset_->shape().stored_bytes()) {
    if (dataset_->shape().fields != nullptr) specs_ = dataset_->shape().fields->specs();
    // As without a weight, the label is called `label`, whatever its name was.
    if (!names_targets)
      for (FieldSpec& spec : specs_)
        if (spec.is_label) spec.name = kLabel;
    if (specs_.empty()) specs_ = {{.name = kLabel, .type = FieldType::kI64, .is_label = true}};
    shards_ = cut_evenly(dataset_->samples(),
                         bytes_ + kLabelBytes + dataset_->shape().record_bytes(), shard_bytes);
  }

  std::string fingerprint() const override { return dataset_->fingerprint(); }
  const char* unit() const override { return "samples"; }

  ArrowSchema schema(const PackShard&) const override {
    const std::vector<std::string> names = dataset_->class_names();
    ArrowSchema schema;
    schema.fields = {stored_field(dataset_->shape(), dataset_->column_names())};
    for (const FieldSpec& spec : specs_) {
      schema.fields.push_back(spec.is_label ? arrow_int(spec.name, kLabelBytes, true)
                                            : arrow_float32(spec.name));
      if (!spec.is_label) continue;
      if (dataset_->shape().fields != nullptr)
        schema.fields.back().metadata = target_metadata(names);
      schema.metadata =
          classes_metadata(spec.name, names.empty() ? numbered(dataset_->classes()) : names);
    }
    return schema;
  }

  Status read(const PackShard& shard, const GiveBatchFn& give) const override {
    const uint64_t each = std::max<uint64_t>(1, limits::kPackBatchBytes / bytes_);
    const uint64_t elements = dataset_->shape().elements();
    for (uint64_t begin = shard.begin; begin < shard.end; begin += each) {
      const uint64_t rows = std::min(each, shard.end - begin);
      PackBatch batch{rows, rows, {{rows, 0}, {rows * elements, 0}}, {{}, {}, {}}};
      for (size_t i = 0; i < specs_.size(); ++i) {
        batch.nodes.push_back({rows, 0});
        batch.buffers.insert(batch.buffers.end(), 2, {});
      }
      batch.buffers[2].reserve(rows * bytes_);
      for (uint64_t i = begin; i < begin + rows; ++i) {
        const SamplePlace place = dataset_->place_of(i);
        const auto [stored, number] = pixels_.at(place);
        batch.buffers[2].append(reinterpret_cast<const char*>(stored.sample(number)), bytes_);
        LOCKSTEP_RETURN_IF_ERROR(append_fields(place, batch.buffers));
      }
      std::vector<uint64_t> samples(rows);
      std::iota(samples.begin(), samples.end(), begin);
      LOCKSTEP_RETURN_IF_ERROR(dataset_->unchanged(samples));
      LOCKSTEP_RETURN_IF_ERROR(give(batch));
    }
    return Status::ok();
  }

 private:
  // Every field but the label is a float32 (csv_dataset.cc).
  Status append_fields(const SamplePlace& place, std::vector<std::string>& buffers) const {
    std::vector<std::byte> record(dataset_->shape().record_bytes());
    if (!record.empty()) {
      const auto [from, number] = fields_->at(place);
      LOCKSTEP_RETURN_IF_ERROR(from.read_record(number, record.data()));
    }
    for (size_t f = 0; f < specs_.size(); ++f) {
      std::string& values = buffers[4 + 2 * f];  // of its two buffers the second
      if (specs_[f].is_label) {
        const auto [from, number] = labels_.at(place);
        append_label(from.label(number), values);
      } else {
        const std::byte* value = record.data() + dataset_->shape().fields->offset(f);
        values.append(reinterpret_cast<const char*>(value), sizeof(float));
      }
    }
    return Status::ok();
  }

  std::unique_ptr<Dataset> dataset_;
  As<StoredSamples> pixels_;
  As<Labels> labels_;
  std::optional<As<SampleFields>> fields_;
  std::vector<FieldSpec> specs_;  // of the columns after the samples
  uint64_t bytes_;
};

class ImageSource final : public PackSource {
 public:
  ImageSource(const EncodedSource& source, ExtentIndex index, uint64_t shard_bytes)
      : index_(std::move(index)), files_(index_, source.directory, source.far, source.copied) {
    for (uint64_t i = 0; i < index_.classes(); ++i) classes_.emplace_back(index_.class_name(i));
    for (uint64_t i = 0; i < index_.samples(); ++i) {
      const uint64_t bytes = index_.extent(i).bytes + kLabelBytes;
      if (shards_.empty() || shards_.back().bytes + bytes > shard_bytes)
        shards_.push_back({i, i, 0, 0, 0});
      shards_.back().end = i + 1;
      ++shards_.back().rows;
      shards_.back().bytes += bytes;
    }
  }

  std::string fingerprint() const override { return std::string(index_.fingerprint()); }
  const char* unit() const override { return "samples"; }

  ArrowSchema schema(const PackShard&) const override {
    ArrowField image;
    image.name = kImage;
    image.kind = ArrowKind::kBinary;
    return {{image, arrow_int(kLabel, kLabelBytes, true)}, classes_metadata(kLabel, classes_)};
  }

  Status read(const PackShard& shard, const GiveBatchFn& give) const override {
    std::vector<uint8_t> image;
    for (uint64_t i = shard.begin; i < shard.end;) {
      PackBatch batch{0, 0, {}, {{}, {}, {}, {}, {}}};
      std::string& content = batch.buffers[2];
      append_offset(content, batch.buffers[1]);
      // At most one image beyond the limit, so that offsets of 4 bytes are enough.
      for (; i < shard.end && content.size() < limits::kPackBatchBytes; ++i, ++batch.rows) {
        LOCKSTEP_RETURN_IF_ERROR(files_.read(i, image));
        content.append(image.begin(), image.end());
        append_offset(content, batch.buffers[1]);
        append_label(index_.extent(i).label, batch.buffers[4]);
      }
      batch.units = batch.rows;
      batch.nodes = {{batch.rows, 0}, {batch.rows, 0}};
      LOCKSTEP_RETURN_IF_ERROR(give(batch));
    }
    return Status::ok();
  }

 private:
  static void append_offset(const std::string& content, std::string& out) {
    const auto offset = static_cast<int32_t>(content.size());
    out.append(reinterpret_cast<const char*>(&offset), sizeof offset);
  }

  ExtentIndex index_;
  EncodedFiles files_;
  std::vector<std::string> classes_;
};

}  // namespace

Result<std::unique_ptr<PackSource>> open_pack_source(const DataPlace& place, Split split,
                                                     const std::string& cache_dir,
                                                     uint64_t shard_bytes,
                                                     const ProgressFn& progress) {
  const wire::DatasetSpec& spec = place.spec;
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string format,
                            resolve_format(spec.path(), spec.format(), place.cut.columns));
  LOCKSTEP_RETURN_IF_ERROR(check_columns(place.cut.columns, spec.path(), format));
  const bool is_table = format == "csv";
  if (place.cut.columns.has_fields() && !is_table)
    return Status(Code::kUsage,
                  "data.inputs, data.targets and data.weight cannot be packed: " + spec.path() +
                      " is read as it is; leave them out to pack the "
                      "input and the label alone");
  LOCKSTEP_RETURN_IF_ERROR(check_is_text(place.cut, spec.path(), format));
  std::unique_ptr<PackSource> source;
  if (is_token_format(format)) {
    LOCKSTEP_ASSIGN_OR_RETURN(const auto paths, token_format(format).find(spec.path(), split));
    LOCKSTEP_ASSIGN_OR_RETURN(const auto vocabulary, open_vocabulary(place.cut));
    LOCKSTEP_ASSIGN_OR_RETURN(
        std::vector<TokenStream> streams,
        open_token_streams(paths, format, place.cut.columns, vocabulary.get(), cache_dir, progress,
                           /*with_documents=*/true));
    source = std::make_unique<TokenSource>(std::move(streams), shard_bytes);
  } else if (is_encoded_format(format)) {
    LOCKSTEP_ASSIGN_OR_RETURN(EncodedSource found, format_at(spec.path(), format)
                                                       .find({spec.path(), split, progress,
                                                              place.cut.far, place.cut.columns}));
    LOCKSTEP_ASSIGN_OR_RETURN(const EncodedSource plain, inflated(std::move(found), cache_dir));
    LOCKSTEP_ASSIGN_OR_RETURN(ExtentIndex index, open_index(plain, cache_dir, progress));
    source = std::make_unique<ImageSource>(plain, std::move(index), shard_bytes);
  } else {
    LOCKSTEP_ASSIGN_OR_RETURN(auto dataset,
                              open_dataset(spec, split, cache_dir, progress, place.cut));
    for (const std::string& target : place.cut.columns.targets)
      if (target == kRow)
        return Status(Code::kUsage, spec.path() + " has the target " + target +
                                        ", as packed files call the rows; rename the column");
    source = std::make_unique<PixelSource>(std::move(dataset), shard_bytes,
                                           !place.cut.columns.targets.empty());
  }
  if (source->shards().empty()) return Status(Code::kBadData, spec.path() + " holds no token");
  if (source->shards().size() > limits::kDataDirectoryEntries)
    return Status(Code::kUsage,
                  spec.path() + " would become " + std::to_string(source->shards().size()) +
                      " files, and a directory may have " +
                      std::to_string(limits::kDataDirectoryEntries) + "; give a larger --shard-mb");
  return source;
}

}  // namespace lockstep::data
