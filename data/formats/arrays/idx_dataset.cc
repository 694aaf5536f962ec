// A pair of IDX files as a Dataset. The index is arithmetic: no memory per sample.
#include <algorithm>
#include <span>
#include <utility>

#include "comm/base/limits.h"
#include "data/base/file_errors.h"
#include "data/files/gzip.h"
#include "data/files/inflate_cache.h"
#include "data/files/list_files.h"
#include "data/files/mapped_file.h"
#include "data/formats/arrays/array_format.h"
#include "data/formats/arrays/idx_header.h"
#include "data/formats/arrays/idx_inflate.h"
#include "data/formats/arrays/idx_pair.h"
#include "data/formats/arrays/image_dataset.h"
#include "data/formats/format_rows.h"

namespace lockstep::data {
namespace {

struct IdxFile {
  MappedFile file;
  IdxHeader header;
  bool is_inflated = false;
  const uint8_t* content() const { return file.bytes().data() + header.header_bytes; }
};

Result<IdxFile> open_idx_file(const std::string& path, const std::string& cache_dir,
                              const ProgressFn& progress) {
  LOCKSTEP_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
  uint64_t bytes = file.bytes().size();
  const bool is_inflated = is_gzip(file.bytes());
  if (is_inflated) {
    LOCKSTEP_ASSIGN_OR_RETURN(MappedFile inflated,
                              open_inflated_idx(path, file, cache_dir, progress));
    file = std::move(inflated);
    bytes = file.bytes().size() - kTrailerBytes;
  }
  const auto head = file.bytes().first(std::min<uint64_t>(bytes, limits::kIdxHeaderBytes));
  auto header = parse_idx_header(head);
  if (!header.is_ok()) return about(path, header.status());
  const uint64_t wanted = header->file_bytes();
  if (bytes != wanted)
    return Status(Code::kBadData, path + (bytes < wanted ? " is truncated: it has " : " has ") +
                                      std::to_string(bytes) + " bytes, its header promises " +
                                      std::to_string(wanted));
  return IdxFile{std::move(file), std::move(header).value(), is_inflated};
}

bool has_prefix_of_idx(const std::string& name) {
  const bool is_other = name.ends_with(".npy");
  return !is_other && (name.starts_with("train-images") || name.starts_with("train-labels") ||
                       name.starts_with("t10k-images") || name.starts_with("t10k-labels"));
}

Result<std::string> idx_in(const Listing& directory) {
  return named_if(std::any_of(directory.names.begin(), directory.names.end(), has_prefix_of_idx) ||
                      find_idx_pair(directory.path, Split::kTrain).is_ok(),
                  "idx");
}

Result<std::string> idx_remains_in(const Listing& directory) {
  return named_if(has_idx_file(directory.path), "idx");  // with a part missing
}

// Opens both files, inflating them if needed. Checks each, every label, and that they belong
// together.
Result<std::unique_ptr<Dataset>> open_idx_dataset(const IdxPair& pair, const std::string& cache_dir,
                                                  const ProgressFn& progress) {
  LOCKSTEP_ASSIGN_OR_RETURN(IdxFile labels, open_idx_file(pair.labels, cache_dir, progress));
  LOCKSTEP_ASSIGN_OR_RETURN(IdxFile images, open_idx_file(pair.images, cache_dir, progress));
  const auto shape = image_shape(images.header);
  if (!shape.is_ok()) return about(pair.images, shape.status());
  if (const Status status = check_label_header(labels.header); !status.is_ok())
    return about(pair.labels, status);
  if (images.header.dims[0] != labels.header.dims[0])
    return Status(Code::kBadData, pair.images + " holds " + std::to_string(images.header.dims[0]) +
                                      " images, but " + pair.labels + " holds " +
                                      std::to_string(labels.header.dims[0]) +
                                      " labels; they do not belong together");
  const uint64_t samples = images.header.dims[0];
  const uint64_t elements = shape->elements();
  const std::span<const uint8_t> content(images.content(), samples * elements);
  ImageFiles files{"idx", shape.value(), {pair.images, pair.labels}, {}, {}, 0, ""};
  ImageRun run;
  run.content = content;
  run.first = content.data();
  run.stride_bytes = elements;
  run.samples = samples;
  run.path = pair.images;
  run.is_inflated = images.is_inflated;
  run.labels_path = pair.labels;
  run.label = [header = labels.header, stored = labels.content()](uint64_t i) {
    return label_at(header, stored, i);
  };
  run.files = 2;
  files.runs.push_back(std::move(run));
  files.files.push_back(std::move(images.file));
  files.files.push_back(std::move(labels.file));
  return make_image_dataset(std::move(files), cache_dir, progress);
}

Result<std::unique_ptr<Dataset>> open_idx(const StoredRequest& request) {
  LOCKSTEP_ASSIGN_OR_RETURN(const IdxPair pair, find_idx_pair(request.path, request.split));
  return open_idx_dataset(pair, request.cache_dir, request.progress);
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

void add_gzipped(const std::string& path, std::vector<Summed>& out) {
  if (!path.ends_with(".gz")) return;
  const auto ignore = [](std::span<const uint8_t>, uint64_t) { return Status::ok(); };
  out.push_back({path, path, [ignore](std::span<const uint8_t> file) {
                   return inflate_idx(file, ignore).status();
                 }});
}

}  // namespace

constinit const DataFormat kIdxFormat{
    .name = "idx",
    .in_directory = {{{DirectoryStep::kNames, idx_in}, {DirectoryStep::kRemains, idx_remains_in}}},
    .open = open_idx,
    .has_eval = idx_has_eval,
    .serves_both = pair_serves_both<find_idx_pair>,
    .sums = pair_sums<find_idx_pair, add_gzipped>};

}  // namespace lockstep::data
