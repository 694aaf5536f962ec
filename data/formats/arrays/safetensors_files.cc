#include "data/formats/arrays/safetensors_files.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "comm/base/text/lower_case.h"
#include "data/base/file_errors.h"
#include "data/files/list_files.h"
#include "data/files/mapped_file.h"
#include "data/formats/arrays/array_choice.h"
#include "data/formats/arrays/array_format.h"
#include "data/formats/arrays/npy_dataset.h"
#include "data/formats/format_rows.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnding = ".safetensors";

std::string_view text_of(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The paths of the files; empty if there are none.
Result<std::vector<std::string>> files_of(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    if (!fs::exists(path, error)) return Status(Code::kNoInput, "data " + path + " is not there");
    return std::vector<std::string>{path};
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const auto names, list_data_files(path));
  std::vector<std::string> files;
  for (const std::string& name : names)
    if (is_safetensors_name(name)) files.push_back((fs::path(path) / name).string());
  return files;
}

Result<std::vector<TensorPlace>> list_tensors(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto files, files_of(path));
  std::vector<TensorPlace> places;
  for (const std::string& file : files) {
    LOCKSTEP_ASSIGN_OR_RETURN(const MappedFile mapped, MappedFile::open(file));
    auto header = safetensors_header(mapped.bytes());
    if (!header.is_ok()) return about(file, header.status());
    for (safetensors::Entry& tensor : header->tensors)
      places.push_back({file, header->data_begin, std::move(tensor)});
  }
  return places;
}

// "x.safetensors (images) holds F32, ...".
Status other_type(const TensorPlace& place, const std::string& wanted) {
  return bad(place.path + " (" + place.tensor.name + ") holds " + place.tensor.type->name +
             ", but " + wanted);
}

// Opens a tensor as the same array in a NumPy file, so the checks of arrays hold for it.
Result<NpyArray> open_tensor(const TensorPlace& place) {
  const safetensors::Entry& tensor = place.tensor;
  LOCKSTEP_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(place.path));
  const uint64_t end = place.data_begin + tensor.end;
  if (end > file.bytes().size()) return bad(place.path + " changed while it was opened; try again");
  NpyHeader header;
  header.kind = tensor.type->kind;
  header.element_bytes = tensor.type->bytes;
  header.dims.assign(tensor.shape.begin(), tensor.shape.end());
  header.content_bytes = tensor.end - tensor.begin;
  return NpyArray{place.path,        place.path + " (" + tensor.name + ")", std::move(file),
                  std::move(header), place.data_begin + tensor.begin,       false};
}

// NumPy has no types for floats of 8 bits and bfloat16.
Result<NpyArray> open_field_tensor(const TensorPlace& place) {
  const safetensors::Type& type = *place.tensor.type;
  const bool is_of_numpy =
      type.kind != 'f' || type.bytes >= 4 || std::string_view("F16") == type.name;
  if (!is_of_numpy)
    return other_type(place, "a field is F16, F32 or F64; save it again as float32");
  return open_tensor(place);
}

Result<std::string> tensors_in(const Listing& directory) {
  if (has_named<list_tensor_arrays>(directory)) return std::string("safetensors");
  return named_if(
      has_safetensors(directory.path) && kind_of_tensors(directory.path) == "safetensors",
      "safetensors");
}

Result<std::string> tensors_at(const FileLook& file) {
  if (!has_safetensors(file.path)) return std::string();
  return file.columns.has_fields() ? "safetensors" : kind_of_tensors(file.path);
}

Result<std::unique_ptr<Dataset>> open_tensors(const StoredRequest& request) {
  if (request.columns.has_fields()) return open_named<list_tensor_arrays>(request, "safetensors");
  LOCKSTEP_ASSIGN_OR_RETURN(const TensorPair pair, find_tensor_pair(request.path, request.split));
  return open_tensor_dataset(pair, request.format, request.cache_dir, request.progress);
}

}  // namespace

Result<safetensors::Header> safetensors_header(std::span<const uint8_t> file) {
  auto header = safetensors::parse_file(text_of(file));
  if (!header.is_ok()) return bad("is " + header.status().message());
  return header;
}

bool is_safetensors_name(const std::string& name) {
  return ends_like(name, kEnding);
}

bool has_safetensors(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return is_safetensors_name(path);
  const auto files = files_of(path);
  return files.is_ok() && !files->empty();
}

std::string kind_of_tensors(const std::string& path) {
  const auto tensors = list_tensors(path);
  if (!tensors.is_ok()) return "safetensors";  // opening it says why
  const bool is_pair = std::any_of(tensors->begin(), tensors->end(), [](const TensorPlace& place) {
    return names_a_pair(place.tensor.name);
  });
  return is_pair ? "safetensors" : "tokens";
}

Result<TensorPair> find_tensor_pair(const std::string& path, Split split) {
  LOCKSTEP_ASSIGN_OR_RETURN(auto tensors, list_tensors(path));
  std::vector<NamedArray> names;
  for (const TensorPlace& place : tensors)
    names.push_back({place.tensor.name, fs::path(place.path).filename().string()});
  LOCKSTEP_ASSIGN_OR_RETURN(const ArrayPair pair, choose_arrays(names, split, path, ""));
  return TensorPair{std::move(tensors[pair.images]), std::move(tensors[pair.labels]),
                    pair.serves_both};
}

Result<std::vector<ListedArray>> list_tensor_arrays(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto tensors, list_tensors(path));
  std::vector<ListedArray> listed;
  for (const TensorPlace& place : tensors)
    listed.push_back(
        {place.tensor.name, fs::path(place.path).filename().string(),
         [place](const std::string&, const ProgressFn&) { return open_field_tensor(place); }});
  return listed;
}

Result<std::unique_ptr<Dataset>> open_tensor_dataset(const TensorPair& pair,
                                                     const std::string& axes,
                                                     const std::string& cache_dir,
                                                     const ProgressFn& progress) {
  const safetensors::Type& images_type = *pair.images.tensor.type;
  if (images_type.kind != 'u' || images_type.bytes != 1)
    return other_type(pair.images,
                      "images are U8, 0 to 255; save it again as uint8, scaled if "
                      "need be");
  const safetensors::Type& labels_type = *pair.labels.tensor.type;
  if (labels_type.kind != 'u' && labels_type.kind != 'i')
    return other_type(pair.labels, "labels are whole numbers; save it again as int64");
  LOCKSTEP_ASSIGN_OR_RETURN(NpyArray images, open_tensor(pair.images));
  LOCKSTEP_ASSIGN_OR_RETURN(NpyArray labels, open_tensor(pair.labels));
  return make_npy_dataset(std::move(images), std::move(labels), "safetensors", axes, cache_dir,
                          progress);
}

constinit const DataFormat kSafetensorsFormat{
    .name = "safetensors",
    .in_directory = {{{DirectoryStep::kNames, tensors_in}}},
    .of_file = {{{FileStep::kEnding, tensors_at}}},
    .open = open_tensors,
    .has_eval = pair_has_eval<find_tensor_pair>,
    .serves_both = pair_serves_both<find_tensor_pair>,
    .named_splits = named_splits_of<list_tensor_arrays>};

}  // namespace lockstep::data
