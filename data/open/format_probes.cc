#include "data/open/format_probes.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "data/arrow/file_layout.h"
#include "data/base/lower_case.h"
#include "data/files/mapped_file.h"
#include "data/formats/arrays/cifar_files.h"
#include "data/formats/arrays/idx_pair.h"
#include "data/formats/arrays/named_arrays.h"
#include "data/formats/arrays/npy_header.h"
#include "data/formats/arrays/npy_pair.h"
#include "data/formats/arrays/npz_pair.h"
#include "data/formats/arrays/safetensors_files.h"
#include "data/formats/arrow/arrow_file.h"
#include "data/formats/images/image_folder.h"
#include "data/formats/shards/mds.h"
#include "data/formats/shards/tfrecord.h"
#include "data/formats/shards/webdataset.h"
#include "data/formats/tables/csv_dataset.h"
#include "data/formats/tables/parquet_files.h"
#include "data/formats/tokens/bin_tokens.h"
#include "data/formats/tokens/token_files.h"

namespace lockstep::data::probe {
namespace {

namespace fs = std::filesystem;

Result<std::string> named_if(bool is_it, const char* name) {
  return is_it ? std::string(name) : std::string();
}

bool has_prefix_of_idx(const std::string& name) {
  const bool is_other = name.ends_with(".npy");
  return !is_other && (name.starts_with("train-images") || name.starts_with("train-labels") ||
                       name.starts_with("t10k-images") || name.starts_with("t10k-labels"));
}

// Tokens have one dimension, images more. What cannot be read is tokens: opening it says why.
std::string kind_of_array(std::span<const uint8_t> bytes) {
  const auto header = parse_npy_header(bytes);
  return header.is_ok() && header->dims.size() > 1 ? "npy" : "tokens";
}

// Among other data: means, embeddings and lists of places are arrays, too, and no tokens.
std::string loose_kind(std::span<const uint8_t> bytes) {
  const auto header = parse_npy_header(bytes);
  if (!header.is_ok() || header->dims.size() != 1) return "";
  const bool is_wide = header->is_integer() && header->element_bytes == 4;
  return is_wide || header->type_text() == "uint16" ? "tokens" : "";
}

Result<std::string> name_of_cifar(const Result<const CifarFormat*>& found) {
  if (!found.is_ok()) return found.status();
  return *found == nullptr ? std::string() : std::string((*found)->name);
}

auto first_with(const Listing& directory, std::string_view ending) {
  return std::find_if(directory.names.begin(), directory.names.end(),
                      [&](const std::string& name) { return ends_like(name, ending); });
}

bool has(const Listing& directory, std::string_view ending) {
  return first_with(directory, ending) != directory.names.end();
}

// Arrays that the job names are in the directory, or in those of its splits.
bool has_named(ListArraysFn list, const Listing& directory) {
  return directory.columns.has_fields() &&
         splits_of_named(list, directory.path, directory.columns).has_any;
}

}  // namespace

Result<std::string> idx_in(const Listing& directory) {
  return named_if(std::any_of(directory.names.begin(), directory.names.end(), has_prefix_of_idx) ||
                      find_idx_pair(directory.path, Split::kTrain).is_ok(),
                  "idx");
}
Result<std::string> idx_remains_in(const Listing& directory) {
  return named_if(has_idx_file(directory.path), "idx");  // of which something is missing
}

Result<std::string> cifar_directly_in(const Listing& directory) {
  return name_of_cifar(cifar_in(directory.path));
}
Result<std::string> cifar_unpacked_in(const Listing& directory) {
  return name_of_cifar(cifar_below(directory.path));
}

Result<std::string> npy_in(const Listing& directory) {
  return named_if(has_npy_pair_names(directory.path) || has_named(list_npy_arrays, directory),
                  "npy");
}
Result<std::string> npz_in(const Listing& directory) {
  return named_if(is_npz(directory.path) || has_named(list_npz_arrays, directory), "npz");
}
Result<std::string> tensors_in(const Listing& directory) {
  if (has_named(list_tensor_arrays, directory)) return std::string("safetensors");
  return named_if(
      has_safetensors(directory.path) && kind_of_tensors(directory.path) == "safetensors",
      "safetensors");
}

Result<std::string> megatron_in(const Listing& directory) {
  const auto is_pair = [&](const std::string& name) {
    return name.ends_with(".idx") && is_megatron_file((fs::path(directory.path) / name).string());
  };
  return named_if(std::any_of(directory.names.begin(), directory.names.end(), is_pair), "megatron");
}

Result<std::string> mds_in(const Listing& directory) {
  return named_if(is_mds_directory(directory.path), "mds");
}
template <Split split>
Result<std::string> tar_in(const Listing& directory) {
  return named_if(find_shards(directory.path, split, "", is_tar_file).is_ok(), "webdataset");
}
template <Split split>
Result<std::string> tfrecord_in(const Listing& directory) {
  return named_if(find_shards(directory.path, split, "", is_tfrecord_file).is_ok(), "tfrecord");
}
template <Split split>
Result<std::string> arrow_in(const Listing& directory) {
  const bool is_it = find_shards(directory.path, split, "", has_arrow_ending).is_ok();
  return is_it ? arrow_format_of(directory.path, directory.columns) : std::string();
}
template Result<std::string> tar_in<Split::kTrain>(const Listing&);
template Result<std::string> tar_in<Split::kEval>(const Listing&);
template Result<std::string> tfrecord_in<Split::kTrain>(const Listing&);
template Result<std::string> tfrecord_in<Split::kEval>(const Listing&);
template Result<std::string> arrow_in<Split::kTrain>(const Listing&);
template Result<std::string> arrow_in<Split::kEval>(const Listing&);

Result<std::string> packed_tar_in(const Listing& directory) {
  for (const Split split : {Split::kTrain, Split::kEval})
    if (find_shards(directory.path, split, "", is_packed_tar).is_ok())
      return std::string("webdataset");
  return std::string();
}

Result<std::string> tokens_in(const Listing& directory) {
  if (has(directory, ".bin")) return std::string("tokens");
  for (const std::string& name : directory.names) {
    if (!ends_like(name, ".npy")) continue;
    LOCKSTEP_ASSIGN_OR_RETURN(const MappedFile file,
                              MappedFile::open((fs::path(directory.path) / name).string()));
    if (const std::string kind = loose_kind(file.bytes()); !kind.empty()) return kind;
  }
  return named_if(has_safetensors(directory.path), "tokens");
}
Result<std::string> any_array_in(const Listing& directory) {
  const auto array = first_with(directory, ".npy");
  if (array == directory.names.end()) return std::string();
  LOCKSTEP_ASSIGN_OR_RETURN(const MappedFile file,
                            MappedFile::open((fs::path(directory.path) / *array).string()));
  return kind_of_array(file.bytes());
}
Result<std::string> text_in(const Listing& directory) {
  return named_if(has(directory, ".txt"), "text");
}
Result<std::string> image_folder_in(const Listing& directory) {
  const bool has_masks = directory.columns.has_fields();
  return named_if(is_image_folder(directory.path), has_masks ? "image_mask" : "image_folder");
}
Result<std::string> parquet_in(const Listing& directory) {
  return named_if(is_parquet(directory.path), "parquet");
}
Result<std::string> csv_in(const Listing& directory) {
  return named_if(has_csv_files(directory.path), "csv");
}

Result<std::string> megatron_at(const FileLook& file) {
  return named_if(is_megatron_file(file.path), "megatron");
}
Result<std::string> bin_at(const FileLook& file) {
  return named_if(ends_like(file.path, ".bin"), "tokens");
}
Result<std::string> text_at(const FileLook& file) {
  return named_if(ends_like(file.path, ".txt"), "text");
}
Result<std::string> tar_at(const FileLook& file) {
  return named_if(is_tar_file(file.path) || is_packed_tar(file.path), "webdataset");
}
Result<std::string> npz_at(const FileLook& file) {
  return named_if(is_npz(file.path), "npz");
}
Result<std::string> tensors_at(const FileLook& file) {
  if (!has_safetensors(file.path)) return std::string();
  return file.columns.has_fields() ? "safetensors" : kind_of_tensors(file.path);
}
Result<std::string> tfrecord_at(const FileLook& file) {
  return named_if(is_tfrecord_file(file.path), "tfrecord");
}
Result<std::string> arrow_name_at(const FileLook& file) {
  return has_arrow_ending(file.path) ? arrow_format_of(file.path, file.columns) : std::string();
}
Result<std::string> parquet_at(const FileLook& file) {
  if (is_parquet_file(file.path)) return pack_it_first(file.path);
  return std::string();
}
Result<std::string> npy_at(const FileLook& file) {
  return is_npy(file.bytes) || ends_like(file.path, ".npy") ? kind_of_array(file.bytes)
                                                            : std::string();
}
Result<std::string> token_header_at(const FileLook& file) {
  return named_if(has_token_header(file.bytes), "tokens");
}
Result<std::string> arrow_bytes_at(const FileLook& file) {
  return is_arrow_file(file.bytes) ? arrow_format_of(file.path, file.columns) : std::string();
}
Result<std::string> csv_at(const FileLook& file) {
  return named_if(has_csv_ending(file.path), "csv");
}

}  // namespace lockstep::data::probe
