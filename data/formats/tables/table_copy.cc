#include "data/formats/tables/table_copy.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "comm/base/hash.h"
#include "comm/base/limits.h"
#include "comm/base/text/shallow_json.h"
#include "data/base/file_errors.h"
#include "data/dataset/content_hash.h"
#include "data/files/inflate_cache.h"

namespace lockstep::data {
namespace {

using Json = nlohmann::json;

constexpr char kVersion[] = "table 2";  // of a copy; Lockstep replaces other versions
constexpr size_t kNumberBytes = sizeof(float);
constexpr int kDepth = 2;  // of the JSON: lists in an object

template <typename T>
std::span<const uint8_t> bytes_of(std::span<const T> numbers) {
  return {reinterpret_cast<const uint8_t*>(numbers.data()), numbers.size_bytes()};
}

Json json_of(const CsvTable& table, const std::vector<uint64_t>& first_rows) {
  const CsvColumns& columns = table.columns;
  return {{"rows", table.lines.size()},   {"first_rows", first_rows},   {"classes", table.classes},
          {"fields", columns.fields},     {"label", columns.label},     {"names", columns.names},
          {"features", columns.features}, {"targets", columns.targets}, {"weight", columns.weight},
          {"ignored", columns.ignored},   {"note", columns.note},       {"header", columns.header}};
}

// nlohmann's types throw; the exceptions end here.
bool read_json(std::string_view text, TableRows* rows, uint64_t* count) {
  try {
    const Json json = parse_shallow_json(text, kDepth);
    CsvColumns& columns = rows->table.columns;
    json.at("rows").get_to(*count);
    json.at("first_rows").get_to(rows->first_rows);
    json.at("classes").get_to(rows->table.classes);
    json.at("fields").get_to(columns.fields);
    json.at("label").get_to(columns.label);
    json.at("names").get_to(columns.names);
    json.at("features").get_to(columns.features);
    json.at("targets").get_to(columns.targets);
    json.at("weight").get_to(columns.weight);
    json.at("ignored").get_to(columns.ignored);
    json.at("note").get_to(columns.note);
    json.at("header").get_to(columns.header);
    return true;
  } catch (const Json::exception&) {
    return false;
  }
}

bool are_columns_sound(const CsvColumns& columns) {
  const auto is_field = [&](size_t column) { return column < columns.fields; };
  const auto may_be = [&](size_t column) { return column == kNoCsvColumn || is_field(column); };
  return columns.fields <= kCsvFields && !columns.features.empty() &&
         columns.features.size() <= columns.fields && columns.targets.size() <= columns.fields &&
         (columns.names.empty() || columns.names.size() == columns.fields) &&
         std::ranges::all_of(columns.features, is_field) &&
         std::ranges::all_of(columns.targets, is_field) && may_be(columns.label) &&
         may_be(columns.weight);
}

// Takes a copy apart. False if it is no copy, whatever its checksum says.
bool read_copy(std::span<const uint8_t> content, TableRows* rows) {
  uint64_t json_bytes = 0;
  if (content.size() < sizeof json_bytes) return false;
  const size_t end = content.size() - sizeof json_bytes;
  std::memcpy(&json_bytes, content.data() + end, sizeof json_bytes);
  if (json_bytes > end) return false;
  const uint64_t numbers = (end - json_bytes) / kNumberBytes;
  uint64_t count = 0;
  const auto* const text = reinterpret_cast<const char*>(content.data() + end - json_bytes);
  if (!read_json({text, json_bytes}, rows, &count)) return false;
  const CsvColumns& columns = rows->table.columns;
  if (!are_columns_sound(columns) || count == 0 || count > numbers) return false;
  const auto is_label = [&](size_t column) { return column == columns.label; };
  const auto labels = static_cast<uint64_t>(std::ranges::count_if(columns.targets, is_label));
  const bool has_weight = columns.weight != kNoCsvColumn;
  const uint64_t each =
      columns.features.size() + 2 + columns.targets.size() - labels + (has_weight ? 1 : 0);
  if (count > numbers / each || numbers != count * each || (end - json_bytes) % kNumberBytes != 0)
    return false;
  const uint8_t* at = content.data();
  const auto take = [&]<typename T>(std::span<const T>* out, uint64_t n) {
    *out = {reinterpret_cast<const T*>(at), n};
    at += n * sizeof(T);
  };
  take(&rows->values, count * columns.features.size());
  take(&rows->lines, count);
  take(&rows->labels, count);
  for (const size_t column : columns.targets) {
    auto& target = rows->targets.emplace_back();
    if (!is_label(column)) take(&target, count);
  }
  if (has_weight) take(&rows->weights, count);
  const auto& classes = rows->table.classes;
  const uint64_t most = classes.empty() ? limits::kLabel : classes.size() - 1;
  return std::ranges::max(rows->labels) <= most && !rows->first_rows.empty() &&
         rows->first_rows.front() == 0 && std::ranges::is_sorted(rows->first_rows);
}

// Everything besides the files' content that decides the content of the copy.
std::string means_of(const std::vector<TableFile>& tables, const CsvTable* training,
                     const ColumnNames& columns) {
  Json said = {{"version", kVersion},
               {"input", columns.input},
               {"label", columns.label},
               {"inputs", columns.inputs},
               {"targets", columns.targets},
               {"weight", columns.weight},
               {"are_numbers", columns.are_numbers},
               {"may_lack_answers", columns.may_lack_answers},
               {"has_header", columns.has_header}};
  for (const TableFile& table : tables) said["files"].push_back(table.path);
  if (training != nullptr) {
    CsvTable header;
    header.columns = training->columns;
    header.classes = training->classes;
    said["training"] = json_of(header, {});
  }
  return said.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Marks the content that a copy belongs to, besides size and time of the first file.
uint64_t mark_of(const std::vector<TableFile>& tables) {
  Xxh3 hash;
  for (const TableFile& table : tables) {
    hash.update(std::to_string(table.file.bytes().size()) + " " +
                std::to_string(table.file.modified_ns()) + "\n");
    hash_sampled(table.file.bytes(), kWholeContentBytes, hash);
  }
  return mark_from(hash);
}

// Reads the tables into the sink of a copy.
Status decode(const std::vector<TableFile>& tables, const CsvTable* training,
              const ColumnNames& columns, const ByteSink& sink) {
  uint64_t done = 0;
  uint64_t expected = 0;  // bytes of text; decoded rows do not exceed them by much
  for (const TableFile& table : tables) expected += table.file.bytes().size();
  const auto put = [&](std::span<const uint8_t> bytes) {
    done += bytes.size();
    return sink(bytes, std::max(done, expected));
  };
  CsvTableReader reader(training, columns);
  reader.give_values_to([&](std::span<const float> values) { return put(bytes_of(values)); });
  LOCKSTEP_ASSIGN_OR_RETURN(const auto first_rows, add_tables(tables, reader, {}));
  auto read = reader.finish();
  if (!read.is_ok()) return about(tables.back().path, read.status());
  const CsvTable& table = *read;
  LOCKSTEP_RETURN_IF_ERROR(put(bytes_of(std::span(table.lines))));
  LOCKSTEP_RETURN_IF_ERROR(put(bytes_of(std::span(table.labels))));
  for (const std::vector<float>& numbers : table.targets)
    LOCKSTEP_RETURN_IF_ERROR(put(bytes_of(std::span(numbers))));
  LOCKSTEP_RETURN_IF_ERROR(put(bytes_of(std::span(table.weights))));
  const std::string json =
      json_of(table, first_rows).dump(-1, ' ', false, Json::error_handler_t::replace);
  LOCKSTEP_RETURN_IF_ERROR(put(bytes_of(std::span(json.data(), json.size()))));
  const uint64_t json_bytes = json.size();
  return put(bytes_of(std::span(&json_bytes, 1)));
}

}  // namespace

std::string_view text_of(const TableFile& table) {
  return {reinterpret_cast<const char*>(table.file.bytes().data()), table.file.bytes().size()};
}

Result<std::vector<uint64_t>> add_tables(const std::vector<TableFile>& tables,
                                         CsvTableReader& reader, const ProgressFn& progress) {
  std::vector<uint64_t> first_rows;
  for (const TableFile& table : tables) reader.look(text_of(table));
  for (const TableFile& table : tables) {
    if (progress) progress("reading " + table.path, 0, table.file.bytes().size());
    first_rows.push_back(reader.rows());
    const Status status = reader.add(text_of(table));
    LOCKSTEP_RETURN_IF_ERROR(table.file.unchanged());  // a change would explain it
    if (!status.is_ok()) return about(table.path, status);
  }
  return first_rows;
}

Result<TableRows> open_table_copy(const std::vector<TableFile>& tables, const CsvTable* training,
                                  const ColumnNames& columns, const std::string& cache_dir,
                                  const ProgressFn& progress) {
  const TableFile& first = tables.front();
  if (cache_dir.empty())
    return Status(Code::kUsage,
                  "no cache directory to keep the rows of " + first.path + "; set data.cache_dir");
  Compressed what;
  what.path = first.path;
  what.inflate = [&](const ByteSink& sink) -> Status {
    Status status = decode(tables, training, columns, sink);
    // The message already names its file, which need not be the first one.
    if (status.code() == Code::kBadData) return {Code::kAborted, status.message()};
    return status;
  };
  what.verb = "reading";
  what.ending = "rows";
  what.means = means_of(tables, training, columns);
  what.mark = mark_of(tables);
  auto made = open_inflated(what, first.file, cache_dir, progress);
  if (made.status().code() == Code::kAborted)
    return Status(Code::kBadData, made.status().message());
  LOCKSTEP_RETURN_IF_ERROR(made.status());
  TableRows rows;
  rows.copy = std::move(*made);
  if (!read_copy(content_of(rows.copy->bytes(), /*is_copy=*/true), &rows))
    return Status(Code::kBadData, inflated_path(what, cache_dir) + " is not the copy of " +
                                      first.path + " that Lockstep made; remove it");
  return rows;
}

}  // namespace lockstep::data
