#include "data/open/detect_format.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "comm/run/job/data_formats.h"
#include "data/files/list_files.h"
#include "data/files/mapped_file.h"
#include "data/formats/arrays/npz_pair.h"
#include "data/formats/arrays/safetensors_files.h"
#include "data/formats/images/image_folder.h"
#include "data/formats/tables/parquet_files.h"
#include "data/open/evidence.h"
#include "data/open/formats.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

constexpr char kParquet[] = "parquet";  // which nothing reads in place

Status of_no_format(const std::string& path, const std::vector<std::string>& names) {
  if (names.empty())
    return {Code::kNoInput, "data directory " + path +
                                " has no data files; name the directory that holds the data"};
  const auto is_compressed = [](const std::string& name) {
    return name.ends_with(".gz") || name.ends_with(".tgz") || name.ends_with(".zst") ||
           name.ends_with(".xz") || name.ends_with(".bz2");
  };
  const auto packed = std::find_if(names.begin(), names.end(), is_compressed);
  if (packed != names.end())
    return {Code::kNoInput, "data directory " + path + " has " + *packed +
                                ", a compressed file; Lockstep cannot read single samples of it, "
                                "so unpack the files (gunzip, zstd -d, xz -d)"};
  return {Code::kNoInput, "data directory " + path +
                              " has no file in a format that Lockstep knows; the first of " +
                              std::to_string(names.size()) + " is " + names.front() +
                              ". Set data.train.format, or name the directory that holds the data "
                              "(formats: data/FORMATS.md)"};
}

// Whether more than text that describes other data is there.
bool has_data(const Listing& directory, const std::vector<Candidate>& candidates) {
  return std::any_of(candidates.begin(), candidates.end(), [&](const Candidate& one) {
    return one.format != "text" || one.probe->weigh(directory).bytes > 0;
  });
}

// "parquet" for Parquet.
Result<std::string> look_in_directory(const std::string& path, const ColumnNames& columns) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto names, list_data_files(path));
  const Listing directory{path, names, columns};
  std::vector<Candidate> candidates;
  for (const DirectoryStep step :
       {DirectoryStep::kNames, DirectoryStep::kShardsToTrainOn, DirectoryStep::kShardsToEvaluateOn,
        DirectoryStep::kLoose, DirectoryStep::kLast, DirectoryStep::kRemains}) {
    if (step == DirectoryStep::kRemains && has_data(directory, candidates)) break;
    for (const DataFormat* format : data_formats()) {
      for (const DataFormat::DirectoryProbe& probe : format->in_directory) {
        if (probe.step != step) continue;
        LOCKSTEP_ASSIGN_OR_RETURN(const std::string found, probe.look(directory));
        if (found.empty()) continue;
        if (step == DirectoryStep::kNames || step == DirectoryStep::kRemains) return found;
        const auto is_same = [&](const Candidate& known) { return known.format == found; };
        if (std::none_of(candidates.begin(), candidates.end(), is_same))
          candidates.push_back({found, &probe});
      }
    }
  }
  if (candidates.empty()) return of_no_format(path, names);
  return strongest(directory, candidates);
}

Result<std::string> detect_directory(const std::string& path, const ColumnNames& columns) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string found, look_in_directory(path, columns));
  if (found == kParquet) return pack_it_first(path);
  return found;
}

// Empty if no format knows the file at this step.
Result<std::string> detect_file(FileStep step, const FileLook& file) {
  for (const DataFormat* format : data_formats()) {
    for (const DataFormat::FileProbe& probe : format->of_file) {
      if (probe.step != step) continue;
      auto found = probe.look(file);
      if (!found.is_ok() || !found->empty()) return found;
    }
  }
  return std::string();
}

}  // namespace

Result<std::string> detect_format(const std::string& path, const ColumnNames& columns) {
  std::error_code error;
  if (fs::is_directory(path, error)) return detect_directory(path, columns);
  LOCKSTEP_ASSIGN_OR_RETURN(std::string found, detect_file(FileStep::kPair, {path, {}, columns}));
  if (!found.empty()) return found;
  if (!fs::exists(path, error)) return Status(Code::kNoInput, "data " + path + " is not there");
  for (const FileStep step : {FileStep::kEnding, FileStep::kMixed}) {
    LOCKSTEP_ASSIGN_OR_RETURN(found, detect_file(step, {path, {}, columns}));
    if (!found.empty()) return found;
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(path));
  LOCKSTEP_ASSIGN_OR_RETURN(found, detect_file(FileStep::kContent, {path, file.bytes(), columns}));
  if (!found.empty()) return found;
  return Status(Code::kUsage,
                path +
                    " has a name that does not tell its format; set data.train.format to text, "
                    "tokens or tokens_u32, or for images name the directory that holds the files");
}

Result<std::string> resolve_format(const std::string& path, const std::string& format,
                                   const ColumnNames& columns) {
  if (format.empty() || format == "auto") return detect_format(path, columns);
  const DataFormat* row = find_data_format(format);
  if (row != nullptr && row->resolved != nullptr) return row->resolved(path, columns);
  if (!is_open_format(format)) return format;
  const auto found = detect_format(path, columns);  // arrays of one dimension are tokens
  return found.is_ok() && may_be_format(format, *found) ? *found : format;
}

std::string doubt_of(const std::string& path, const std::string& format) {
  return format == "image_folder" ? doubt_of_classes(path) : "";
}

bool holds_parquet(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return is_parquet_file(path);
  const auto found = look_in_directory(path, {});
  return found.is_ok() && *found == kParquet;
}

bool has_eval_files(const std::string& path, const ColumnNames& columns) {
  std::error_code error;
  if (!fs::is_directory(path, error) && !is_npz(path) && !has_safetensors(path)) return false;
  const auto format = detect_format(path, columns);
  if (!format.is_ok()) return false;
  const DataFormat& row = *find_data_format(*format);
  const bool are_named = columns.has_fields() && row.named_splits != nullptr;
  return are_named ? row.named_splits(path, columns).has_eval : row.has_eval(path);
}

}  // namespace lockstep::data
