#include "data/formats/tables/csv_dataset.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "comm/base/hash.h"
#include "comm/base/text/lower_case.h"
#include "data/base/file_errors.h"
#include "data/csv/csv_table.h"
#include "data/dataset/content_hash.h"
#include "data/dataset/records.h"
#include "data/dataset/statistics.h"
#include "data/dataset/weigh_files.h"
#include "data/formats/format_rows.h"
#include "data/formats/shards/shards.h"
#include "data/formats/tables/table_copy.h"

namespace lockstep::data {
namespace {

struct Loaded {
  std::vector<std::string> paths;
  TableRows rows;
};

class CsvRows final : public StoredSamples, public Labels, public SampleFields {
 public:
  CsvRows(Loaded loaded, std::string wanted_input, bool lacks_answers)
      : loaded_(std::move(loaded)),
        wanted_input_(std::move(wanted_input)),
        fields_(lacks_answers ? std::make_shared<const FieldList>(std::vector<FieldSpec>())
                              : fields_of(loaded_.rows)) {}

  Result<DatasetFacts> facts() const {
    const TableRows& rows = loaded_.rows;
    const CsvTable& table = rows.table;
    DatasetFacts facts{.samples = rows.size(),
                       .shape = {static_cast<uint32_t>(table.features()), 1, 1},
                       .format = "csv",
                       .files = loaded_.paths,
                       .class_names = table.classes,
                       .notes = {.columns = {wanted_input_, shown_label(table.columns),
                                             table.columns.note, table.columns.header}}};
    facts.shape.is_row = true;
    facts.shape.fields = fields_;
    facts.classes = table.classes.empty() ? std::ranges::max(rows.labels) + 1
                                          : static_cast<uint32_t>(table.classes.size());
    for (const size_t column : table.columns.features)
      if (!table.columns.names.empty()) facts.column_names.push_back(table.columns.names[column]);
    const Records records{
        facts.format,
        facts.samples,
        facts.shape,
        {{reinterpret_cast<const uint8_t*>(rows.values.data()), rows.values.size_bytes()}},
        [this](uint64_t i) { return sample(i); },
        [this](uint64_t i) { return label(i); }};
    std::string text = "lockstep table 1\n" + fingerprint_of(records);
    for (const std::string& name : table.classes)
      text += "\n" + std::to_string(name.size()) + " " + name;
    facts.fingerprint = xxh3_hex(text.data(), text.size());
    if (fields_ != nullptr) {
      std::vector<std::string> content = {facts.fingerprint};
      for (const std::span<const float> numbers : numbers_by_field_)
        content.push_back(xxh3_hex(numbers.data(), numbers.size_bytes()));
      facts.fingerprint = fingerprint_of(*fields_, content);
    }
    LOCKSTEP_ASSIGN_OR_RETURN(facts.statistics, row_statistics(records));
    return facts;
  }

  const uint8_t* sample(uint64_t i) const override {
    const float* row = loaded_.rows.values.data() + i * loaded_.rows.table.features();
    return reinterpret_cast<const uint8_t*>(row);
  }
  uint32_t label(uint64_t i) const override { return loaded_.rows.labels[i]; }
  // Every field but the label is one float32, at a multiple of 8 bytes.
  Status read_record(uint64_t i, std::byte* record) const override {
    for (const std::span<const float> numbers : numbers_by_field_) {
      std::memcpy(record, &numbers[i], sizeof(float));
      record += sizeof(uint64_t);
    }
    return Status::ok();
  }
  std::optional<FileExtent> extent(uint64_t i) const override {
    if (!loaded_.rows.copy) return std::nullopt;
    return loaded_.rows.copy->extent(sample(i), loaded_.rows.table.features() * sizeof(float));
  }
  Status unchanged(std::span<const uint64_t>) const override {
    return loaded_.rows.copy ? loaded_.rows.copy->unchanged() : Status::ok();
  }
  std::string name_of(uint64_t i) const override {
    const auto& firsts = loaded_.rows.first_rows;
    const auto after = std::upper_bound(firsts.begin(), firsts.end(), i);
    return loaded_.paths[static_cast<size_t>(after - firsts.begin()) - 1] + " in line " +
           std::to_string(loaded_.rows.lines[i]);
  }

 private:
  static std::string shown_label(const CsvColumns& columns) {
    return columns.label == kNoCsvColumn ? "" : columns.shown_name(columns.label);
  }

  // Null if the job names no targets and no weight. Notes the numbers of each field.
  std::shared_ptr<const FieldList> fields_of(const TableRows& rows) {
    const CsvColumns& columns = rows.table.columns;
    std::vector<FieldSpec> specs;
    for (size_t i = 0; i < columns.targets.size(); ++i) {
      const bool is_label = columns.targets[i] == columns.label;
      specs.push_back({.name = columns.shown_name(columns.targets[i]),
                       .role = FieldRole::kTarget,
                       .type = is_label ? FieldType::kI64 : FieldType::kF32,
                       .is_label = is_label});
      if (!is_label) numbers_by_field_.push_back(rows.targets[i]);
    }
    if (columns.targets.empty() && columns.weight != kNoCsvColumn)
      specs.push_back({.name = columns.shown_name(columns.label),
                       .role = FieldRole::kTarget,
                       .type = FieldType::kI64,
                       .is_label = true});
    if (columns.weight != kNoCsvColumn) {
      specs.push_back({.name = columns.shown_name(columns.weight),
                       .role = FieldRole::kWeight,
                       .type = FieldType::kF32});
      numbers_by_field_.push_back(rows.weights);
    }
    return specs.empty() ? nullptr : std::make_shared<const FieldList>(std::move(specs));
  }

  const Loaded loaded_;
  const std::string wanted_input_;
  std::vector<std::span<const float>> numbers_by_field_;  // but the label, in their order
  const std::shared_ptr<const FieldList> fields_;         // sets the above
};

Result<Shards> find_csv_files(const std::string& path, Split split,
                              ShardNames taken = ShardNames::kAny) {
  return find_shards(path, split, "*.csv or *.tsv", has_csv_ending, taken);
}

bool are_the_same(const Shards& a, const Shards& b) {
  return a.directory == b.directory && a.names == b.names;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ",") + name;
  return text;
}

Result<Loaded> load(const Shards& files, const ColumnNames& columns, const CsvTable* training,
                    const CsvPlace& place) {
  Loaded loaded;
  std::vector<TableFile> tables;
  uint64_t bytes = 0;
  for (const std::string& name : files.names) {
    const std::string path = files.directory + "/" + name;
    LOCKSTEP_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
    bytes += file.bytes().size();
    loaded.paths.push_back(path);
    tables.push_back({path, std::move(file)});
  }
  if (bytes > place.memory_bytes) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        loaded.rows, open_table_copy(tables, training, columns, place.cache_dir, place.progress));
    return loaded;
  }
  CsvTableReader reader(training, columns);
  LOCKSTEP_ASSIGN_OR_RETURN(auto first_rows, add_tables(tables, reader, place.progress));
  auto table = reader.finish();
  if (!table.is_ok()) return about(loaded.paths.back(), table.status());
  loaded.rows = rows_in_memory(std::move(*table), std::move(first_rows));
  return loaded;
}

}  // namespace

bool has_csv_ending(const std::string& path) {
  return ends_like(path, ".csv") || ends_like(path, ".tsv");
}

bool has_csv_files(const std::string& path) {
  return find_csv_files(path, Split::kTrain, ShardNames::kKnown).is_ok() ||
         find_csv_files(path, Split::kEval, ShardNames::kKnown).is_ok();
}

bool has_csv_eval(const std::string& path) {
  const auto eval = find_csv_files(path, Split::kEval);
  if (!eval.is_ok()) return false;
  const auto train = find_csv_files(path, Split::kTrain);
  return !train.is_ok() || !are_the_same(*train, *eval);
}

Result<std::unique_ptr<Dataset>> open_csv_dataset(const std::string& path, Split split,
                                                  const ColumnNames& columns,
                                                  const CsvPlace& place) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Shards files, find_csv_files(path, split));
  std::optional<Loaded> training;
  if (split == Split::kEval) {
    const auto train = find_csv_files(path, Split::kTrain);
    if (train.is_ok() && !are_the_same(*train, files)) {
      LOCKSTEP_ASSIGN_OR_RETURN(training, load(*train, columns, nullptr, place));
    }
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      Loaded loaded, load(files, columns, training ? &training->rows.table : nullptr, place));
  const auto rows = std::make_shared<const CsvRows>(
      std::move(loaded), columns.inputs.empty() ? columns.input : joined(columns.inputs),
      columns.may_lack_answers);
  LOCKSTEP_ASSIGN_OR_RETURN(DatasetFacts facts, rows->facts());
  return std::make_unique<Dataset>(std::move(facts), rows);
}

namespace {

Result<std::string> csv_in(const Listing& directory) {
  return named_if(has_csv_files(directory.path), "csv");
}
Result<std::string> csv_at(const FileLook& file) {
  return named_if(has_csv_ending(file.path), "csv");
}
Result<std::unique_ptr<Dataset>> open_csv(const StoredRequest& request) {
  return open_csv_dataset(request.path, request.split, request.columns,
                          {request.cache_dir, request.progress});
}

}  // namespace

constinit const DataFormat kCsvFormat{
    .name = "csv",
    .in_directory = {{{DirectoryStep::kLast, csv_in, weight_of<has_csv_ending>}}},
    .of_file = {{{FileStep::kContent, csv_at}}},
    .open = open_csv,
    .has_eval = has_csv_eval,
    .serves_both = unless<has_csv_eval>};

}  // namespace lockstep::data
