#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "comm/base/text/lower_case.h"
#include "data/formats/arrays/array_format.h"
#include "data/formats/arrays/npy_dataset.h"
#include "data/formats/arrays/npy_pair.h"
#include "data/formats/arrays/npz_pair.h"
#include "data/formats/arrays/safetensors_files.h"
#include "data/formats/format_rows.h"

namespace lockstep::data {
namespace {

Result<std::string> npy_in(const Listing& directory) {
  return named_if(has_npy_pair_names(directory.path) || has_named<list_npy_arrays>(directory),
                  "npy");
}

Result<std::string> npy_at(const FileLook& file) {
  return is_npy(file.bytes) || ends_like(file.path, ".npy") ? kind_of_array(file.bytes)
                                                            : std::string();
}

// The row that reads the arrays at a path that a job calls npy.
std::string_view arrays_at(const std::string& path) {
  if (is_npz(path)) return "npz";
  return has_safetensors(path) ? "safetensors" : "npy";
}

// Opens a pair of files.
Result<std::unique_ptr<Dataset>> open_npy_dataset(const NpyPair& pair, const std::string& axes,
                                                  const std::string& cache_dir,
                                                  const ProgressFn& progress) {
  LOCKSTEP_ASSIGN_OR_RETURN(NpyArray labels, open_npy_file(pair.labels));
  LOCKSTEP_ASSIGN_OR_RETURN(NpyArray images, open_npy_file(pair.images));
  return make_npy_dataset(std::move(images), std::move(labels), "npy", axes, cache_dir, progress);
}

Result<std::unique_ptr<Dataset>> open_npy(const StoredRequest& request) {
  if (request.columns.has_fields()) return open_named<list_npy_arrays>(request, "npy");
  LOCKSTEP_ASSIGN_OR_RETURN(const NpyPair pair, find_npy_pair(request.path, request.split));
  return open_npy_dataset(pair, request.format, request.cache_dir, request.progress);
}

// The row of arrays whose axes the job names; only `npy` is found by looking.
constexpr DataFormat npy_row(std::string_view name) {
  return {.name = name,
          .read_as = arrays_at,
          .open = open_npy,
          .has_eval = pair_has_eval<find_npy_pair>,
          .serves_both = pair_serves_both<find_npy_pair>,
          .named_splits = named_splits_of<list_npy_arrays>};
}

constexpr DataFormat found_npy_row() {
  DataFormat row = npy_row("npy");
  row.in_directory[0] = {DirectoryStep::kNames, npy_in};
  row.of_file[0] = {FileStep::kContent, npy_at};
  return row;
}

}  // namespace

constinit const DataFormat kNpyFormat = found_npy_row();
constinit const DataFormat kNpyNchwFormat = npy_row("npy_nchw");
constinit const DataFormat kNpyNhwcFormat = npy_row("npy_nhwc");

}  // namespace lockstep::data
