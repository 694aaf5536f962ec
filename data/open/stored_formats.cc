#include "data/open/stored_formats.h"

#include <algorithm>
#include <utility>

#include "data/base/file_errors.h"
#include "data/files/gzip.h"
#include "data/files/list_files.h"
#include "data/formats/arrays/cifar_dataset.h"
#include "data/formats/arrays/cifar_files.h"
#include "data/formats/arrays/idx_dataset.h"
#include "data/formats/arrays/idx_inflate.h"
#include "data/formats/arrays/idx_pair.h"
#include "data/formats/arrays/named_arrays.h"
#include "data/formats/arrays/npy_dataset.h"
#include "data/formats/arrays/npy_pair.h"
#include "data/formats/arrays/npz_pair.h"
#include "data/formats/arrays/safetensors_files.h"
#include "data/formats/arrow/arrow_file.h"
#include "data/formats/tables/csv_dataset.h"

namespace lockstep::data::stored {
namespace {

constexpr char kGzipEnding[] = ".gz";

bool cifar_has_eval(const std::string& path, const char* name) {
  return find_cifar_files(path, *cifar_format(name), Split::kEval).is_ok();
}

// Arrays that leave a choice are there; opening them tells.
template <typename Pair>
bool is_there(const Result<Pair>& pair) {
  return pair.is_ok() ? !pair->serves_both : pair.status().code() != Code::kNoInput;
}

template <typename Pair>
Result<bool> serves_both(const Result<Pair>& pair) {
  if (!pair.is_ok()) return pair.status();
  return pair->serves_both;
}

Result<std::unique_ptr<Dataset>> open_named(ListArraysFn list, const StoredRequest& request,
                                            const std::string& format) {
  return open_named_arrays(list, {request.path, request.split, format, request.format,
                                  request.columns, request.cache_dir, request.progress});
}

Status ignore(std::span<const uint8_t>, uint64_t) {
  return Status::ok();
}

void add_gzipped(const std::string& path, std::vector<Summed>& out) {
  if (!path.ends_with(kGzipEnding)) return;
  out.push_back({path, path,
                 [](std::span<const uint8_t> file) { return inflate_idx(file, ignore).status(); }});
}

void add_array(const NpzArray& array, std::vector<Summed>& out) {
  out.push_back({array.path + " (" + array.name + ")", array.path,
                 [entry = array.entry](std::span<const uint8_t> file) {
                   if (entry.offset > file.size() ||
                       entry.stored_bytes > file.size() - entry.offset)
                     return bad("changed while it was verified; try again");
                   const auto stored = file.subspan(entry.offset, entry.stored_bytes);
                   return entry.is_deflated ? inflate_bare(stored, entry.bytes, entry.crc, ignore)
                                            : check_crc32(stored, entry.crc);
                 }});
}

}  // namespace

Result<std::unique_ptr<Dataset>> open_idx(const StoredRequest& request) {
  LOCKSTEP_ASSIGN_OR_RETURN(const IdxPair pair, find_idx_pair(request.path, request.split));
  return open_idx_dataset(pair, request.cache_dir, request.progress);
}

Result<std::unique_ptr<Dataset>> open_cifar(const StoredRequest& request) {
  LOCKSTEP_ASSIGN_OR_RETURN(const CifarFormat cifar, with_label(*cifar_format(request.format),
                                                                request.columns, request.path));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto paths, find_cifar_files(request.path, cifar, request.split));
  return open_cifar_dataset(paths, cifar, request.cache_dir, request.progress);
}

Result<std::unique_ptr<Dataset>> open_npy(const StoredRequest& request) {
  if (request.columns.has_fields()) return open_named(list_npy_arrays, request, "npy");
  LOCKSTEP_ASSIGN_OR_RETURN(const NpyPair pair, find_npy_pair(request.path, request.split));
  return open_npy_dataset(pair, request.format, request.cache_dir, request.progress);
}

Result<std::unique_ptr<Dataset>> open_npz(const StoredRequest& request) {
  if (request.columns.has_fields()) return open_named(list_npz_arrays, request, "npz");
  LOCKSTEP_ASSIGN_OR_RETURN(const NpzPair pair, find_npz_pair(request.path, request.split));
  return open_npz_dataset(pair, request.format, request.cache_dir, request.progress);
}

Result<std::unique_ptr<Dataset>> open_tensors(const StoredRequest& request) {
  if (request.columns.has_fields()) return open_named(list_tensor_arrays, request, "safetensors");
  LOCKSTEP_ASSIGN_OR_RETURN(const TensorPair pair, find_tensor_pair(request.path, request.split));
  return open_tensor_dataset(pair, request.format, request.cache_dir, request.progress);
}

Result<std::unique_ptr<Dataset>> open_arrow(const StoredRequest& request) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Shards shards, find_arrow_shards(request.path, request.split));
  const auto train = find_arrow_shards(request.path, Split::kTrain);
  const bool is_beside = request.split == Split::kEval && train.is_ok() &&
                         (train->directory != shards.directory || train->names != shards.names);
  return open_arrow_pixels(shards, is_beside ? &*train : nullptr, request.columns,
                           request.cache_dir, request.progress);
}

Result<std::unique_ptr<Dataset>> open_csv(const StoredRequest& request) {
  return open_csv_dataset(request.path, request.split, request.columns,
                          {request.cache_dir, request.progress});
}

bool idx_has_eval(const std::string& path) {
  const auto names = list_data_files(path);
  const auto any = [&](std::string_view prefix) {
    return names.is_ok() && std::any_of(names->begin(), names->end(), [&](const std::string& name) {
             return name.starts_with(prefix);
           });
  };
  return any("t10k-images") && any("t10k-labels");
}
bool cifar10_has_eval(const std::string& path) {
  return cifar_has_eval(path, "cifar10");
}
bool cifar100_has_eval(const std::string& path) {
  return cifar_has_eval(path, "cifar100");
}
bool npy_has_eval(const std::string& path) {
  return is_there(find_npy_pair(path, Split::kEval));
}
bool npz_has_eval(const std::string& path) {
  return is_there(find_npz_pair(path, Split::kEval));
}
bool tensors_have_eval(const std::string& path) {
  return is_there(find_tensor_pair(path, Split::kEval));
}

Result<bool> idx_serves_both(const std::string& path) {
  return serves_both(find_idx_pair(path, Split::kTrain));
}
Result<bool> npy_serves_both(const std::string& path) {
  return serves_both(find_npy_pair(path, Split::kTrain));
}
Result<bool> npz_serves_both(const std::string& path) {
  return serves_both(find_npz_pair(path, Split::kTrain));
}
Result<bool> tensors_serve_both(const std::string& path) {
  return serves_both(find_tensor_pair(path, Split::kTrain));
}

NamedSplits npy_splits(const std::string& path, const ColumnNames& columns) {
  return splits_of_named(list_npy_arrays, path, columns);
}
NamedSplits npz_splits(const std::string& path, const ColumnNames& columns) {
  return splits_of_named(list_npz_arrays, path, columns);
}
NamedSplits tensor_splits(const std::string& path, const ColumnNames& columns) {
  return splits_of_named(list_tensor_arrays, path, columns);
}

std::string_view arrays_at(const std::string& path) {
  if (is_npz(path)) return "npz";
  return has_safetensors(path) ? "safetensors" : "npy";
}

Result<std::vector<Summed>> idx_sums(const std::string& path, Split split) {
  LOCKSTEP_ASSIGN_OR_RETURN(const IdxPair pair, find_idx_pair(path, split));
  std::vector<Summed> found;
  add_gzipped(pair.images, found);
  add_gzipped(pair.labels, found);
  return found;
}

Result<std::vector<Summed>> npz_sums(const std::string& path, Split split) {
  LOCKSTEP_ASSIGN_OR_RETURN(const NpzPair pair, find_npz_pair(path, split));
  std::vector<Summed> found;
  add_array(pair.images, found);
  add_array(pair.labels, found);
  return found;
}

}  // namespace lockstep::data::stored
