#include "data/open/detect_format.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "comm/wire/data_formats.h"
#include "data/arrow/layout.h"
#include "data/base/split.h"
#include "data/files/list_files.h"
#include "data/files/mapped_file.h"
#include "data/formats/arrays/cifar_files.h"
#include "data/formats/arrays/idx_pair.h"
#include "data/formats/arrays/npy_header.h"
#include "data/formats/arrays/npy_pair.h"
#include "data/formats/arrays/npz_pair.h"
#include "data/formats/arrays/safetensors_files.h"
#include "data/formats/arrow/arrow_file.h"
#include "data/formats/images/image_folder.h"
#include "data/formats/shards/tfrecord.h"
#include "data/formats/tables/csv_dataset.h"
#include "data/formats/tables/parquet_files.h"
#include "data/formats/tokens/token_files.h"
#include "data/open/encoded_formats.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

bool has_prefix_of_idx(const std::string& name) {
  const bool is_other = name.ends_with(".npy");
  return !is_other && (name.starts_with("train-images") || name.starts_with("train-labels") ||
                       name.starts_with("t10k-images") || name.starts_with("t10k-labels"));
}

// Tokens have one dimension, images more. What cannot be read is tokens: opening it says why.
std::string kind_of_array(const MappedFile& file) {
  const auto header = parse_npy_header(file.bytes());
  return header.is_ok() && header->dims.size() > 1 ? "npy" : "tokens";
}

Status of_no_format(const std::string& path, const std::vector<std::string>& names) {
  if (names.empty()) return {Code::kNoInput, "data directory " + path + " has no files of data"};
  const auto is_compressed = [](const std::string& name) {
    return name.ends_with(".gz") || name.ends_with(".tgz") || name.ends_with(".zst") ||
           name.ends_with(".xz") || name.ends_with(".bz2");
  };
  const auto packed = std::find_if(names.begin(), names.end(), is_compressed);
  if (packed != names.end())
    return {Code::kNoInput, "data directory " + path + " has " + *packed +
                                ", which is compressed as a whole, so that no sample can be read "
                                "by itself; unpack such files (gunzip, zstd -d, xz -d)"};
  return {Code::kNoInput, "data directory " + path +
                              " has no file of a format that is known; the first of " +
                              std::to_string(names.size()) + " is " + names.front() +
                              ". Name what they are with data.train.format, or the directory that "
                              "holds the data (formats: data/FORMATS.md)"};
}

Result<std::string> detect_directory(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto names, list_data_files(path));
  const auto first = [&](std::string_view ending) {
    return std::find_if(names.begin(), names.end(),
                        [&](const std::string& name) { return name.ends_with(ending); });
  };
  if (std::any_of(names.begin(), names.end(), has_prefix_of_idx) ||
      find_idx_pair(path, Split::kTrain).is_ok())
    return std::string("idx");
  LOCKSTEP_ASSIGN_OR_RETURN(const CifarFormat* cifar, cifar_in(path));
  if (cifar != nullptr) return std::string(cifar->name);
  if (has_npy_pair_names(path)) return std::string("npy");
  if (is_npz(path)) return std::string("npz");
  const bool has_tensors = has_safetensors(path);
  if (has_tensors && kind_of_tensors(path) == "safetensors") return std::string("safetensors");
  const auto is_pair = [&](const std::string& name) {
    return name.ends_with(".idx") && is_megatron_file((fs::path(path) / name).string());
  };
  if (std::any_of(names.begin(), names.end(), is_pair)) return std::string("megatron");
  if (const std::string shards = format_of_shards(path); !shards.empty()) return shards;
  if (first(".bin") != names.end()) return std::string("tokens");
  if (const auto array = first(".npy"); array != names.end()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const MappedFile file,
                              MappedFile::open((fs::path(path) / *array).string()));
    return kind_of_array(file);
  }
  if (has_tensors) return std::string("tokens");
  LOCKSTEP_ASSIGN_OR_RETURN(cifar, cifar_below(path));
  if (cifar != nullptr) return std::string(cifar->name);
  if (first(".txt") != names.end()) return std::string("text");
  if (is_image_folder(path)) return std::string("image_folder");
  if (is_parquet(path)) return pack_it_first(path);
  if (has_csv_files(path)) return std::string("csv");
  if (has_idx_file(path)) return std::string("idx");  // of which something is missing
  // Last: what lies beside such an archive may have been unpacked from it.
  if (has_packed_tars(path)) return std::string("webdataset");
  return of_no_format(path, names);
}

}  // namespace

Result<std::string> detect_format(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return detect_directory(path);
  if (is_megatron_file(path)) return std::string("megatron");
  if (!fs::exists(path, error)) return Status(Code::kNoInput, "data " + path + " is not there");
  if (path.ends_with(".bin")) return std::string("tokens");
  if (path.ends_with(".txt")) return std::string("text");
  if (path.ends_with(".tar") || is_packed_tar(path)) return std::string("webdataset");
  if (is_npz(path)) return std::string("npz");
  if (has_safetensors(path)) return kind_of_tensors(path);
  if (is_tfrecord_file(path)) return std::string("tfrecord");
  if (has_arrow_ending(path)) return arrow_format_of(path);
  if (is_parquet_file(path)) return pack_it_first(path);
  LOCKSTEP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(path));
  if (is_npy(file.bytes()) || path.ends_with(".npy")) return kind_of_array(file);
  if (has_token_header(file.bytes())) return std::string("tokens");
  if (is_arrow_file(file.bytes())) return arrow_format_of(path);
  if (has_csv_ending(path)) return std::string("csv");
  return Status(Code::kUsage, path +
                                  " is a file whose format its name does not tell; set "
                                  "data.train.format to text, tokens or tokens_u32, or for images "
                                  "name the directory that holds the files");
}

Result<std::string> resolve_format(const std::string& path, const std::string& format) {
  if (format.empty() || format == "auto") return detect_format(path);
  if (format == "arrow") return arrow_format_of(path);
  if (format != "npy" && format != "safetensors") return format;
  const auto found = detect_format(path);
  return found.is_ok() && *found == "tokens" ? *found : format;
}

bool has_eval_files(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error) && !is_npz(path) && !has_safetensors(path)) return false;
  const auto format = detect_format(path);
  if (!format.is_ok()) return false;
  if (is_token_format(*format) && !fs::is_directory(path, error)) return false;
  if (is_token_format(*format)) return find_token_files(path, *format, Split::kEval).is_ok();
  if (is_encoded_format(*format)) return has_encoded_eval(path, *format);
  if (*format == "arrow") return has_arrow_eval(path);
  if (*format == "csv") return has_csv_eval(path);
  if (const CifarFormat* cifar = cifar_format(*format))
    return find_cifar_files(path, *cifar, Split::kEval).is_ok();
  // Arrays that leave a choice are there; opening them tells.
  const auto is_there = [](const auto& pair) {
    return pair.is_ok() ? !pair->serves_both : pair.status().code() != Code::kNoInput;
  };
  if (*format == "npy") return is_there(find_npy_pair(path, Split::kEval));
  if (*format == "npz") return is_there(find_npz_pair(path, Split::kEval));
  if (*format == "safetensors") return is_there(find_tensor_pair(path, Split::kEval));
  const auto names = list_data_files(path);
  const auto any = [&](std::string_view prefix) {
    return names.is_ok() && std::any_of(names->begin(), names->end(), [&](const std::string& name) {
             return name.starts_with(prefix);
           });
  };
  return any("t10k-images") && any("t10k-labels");
}

}  // namespace lockstep::data
