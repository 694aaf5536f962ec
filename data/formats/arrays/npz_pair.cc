#include "data/formats/arrays/npz_pair.h"

#include <algorithm>
#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "comm/base/limits.h"
#include "comm/base/text/lower_case.h"
#include "data/base/file_errors.h"
#include "data/base/hidden_names.h"
#include "data/files/gzip.h"
#include "data/files/inflate_cache.h"
#include "data/files/list_files.h"
#include "data/files/mapped_file.h"
#include "data/formats/arrays/array_choice.h"
#include "data/formats/arrays/array_format.h"
#include "data/formats/arrays/npy_dataset.h"
#include "data/formats/format_rows.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kArchive = ".npz";
constexpr std::string_view kMember = ".npy";

// The paths of the archives; empty if there are none.
Result<std::vector<std::string>> archives_of(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    if (!fs::exists(path, error)) return Status(Code::kNoInput, "data " + path + " is not there");
    return std::vector<std::string>{path};
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const auto names, list_data_files(path));
  std::vector<std::string> archives;
  for (const std::string& name : names)
    if (ends_like(name, kArchive)) archives.push_back((fs::path(path) / name).string());
  return archives;
}

Status list_arrays(const std::string& path, std::vector<NpzArray>& arrays) {
  LOCKSTEP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(path));
  auto entries = zip_entries(file.bytes());
  if (!entries.is_ok()) return about(path, entries.status());
  for (ZipEntry& entry : *entries) {
    if (!entry.name.ends_with(kMember) || lies_hidden(entry.name)) continue;
    std::string name = entry.name.substr(0, entry.name.size() - kMember.size());
    arrays.push_back({path, std::move(name), std::move(entry)});
  }
  return Status::ok();
}

// Inflates the header only, so that a small archive that promises much fails before Lockstep
// inflates all of it.
Status check_head(const NpzArray& array, std::span<const uint8_t> packed) {
  GzipReader reader(packed, GzipReader::Wrapping::kNone);
  std::vector<uint8_t> head(std::min<uint64_t>(array.entry.bytes, limits::kNpyHeaderBytes));
  LOCKSTEP_ASSIGN_OR_RETURN(const size_t got, reader.read(head));
  LOCKSTEP_ASSIGN_OR_RETURN(const NpyHeader header, parse_npy_header(std::span(head).first(got)));
  return check_npy_size(header, array.entry.bytes);
}

Result<NpyArray> open_array(const NpzArray& array, const std::string& cache_dir,
                            const ProgressFn& progress) {
  LOCKSTEP_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(array.path));
  const ZipEntry& entry = array.entry;
  if (entry.offset > file.bytes().size() || entry.stored_bytes > file.bytes().size() - entry.offset)
    return bad(array.path + " changed while it was opened; try again");
  const std::string name = array.path + " (" + array.name + ")";
  if (!entry.is_deflated)
    return open_npy_array({array.path, name, std::move(file), {}, entry.offset, false},
                          entry.bytes);
  LOCKSTEP_RETURN_IF_ERROR(check_cache(cache_dir, name));
  const auto packed = file.bytes().subspan(entry.offset, entry.stored_bytes);
  const auto inflate = [&](const ByteSink& sink) {
    LOCKSTEP_RETURN_IF_ERROR(check_head(array, packed));
    return inflate_bare(packed, entry.bytes, entry.crc, sink);
  };
  Compressed what{array.path, array.name, inflate};
  what.mark = uint64_t{entry.crc} << 32 | (entry.bytes & 0xffff'ffffU);
  LOCKSTEP_ASSIGN_OR_RETURN(MappedFile inflated, open_inflated(what, file, cache_dir, progress));
  const uint64_t bytes = inflated.bytes().size() - kTrailerBytes;
  return open_npy_array({array.path, name, std::move(inflated), {}, 0, true}, bytes);
}

Result<std::string> npz_in(const Listing& directory) {
  return named_if(is_npz(directory.path) || has_named<list_npz_arrays>(directory), "npz");
}
Result<std::string> npz_at(const FileLook& file) {
  return named_if(is_npz(file.path), "npz");
}

Result<std::unique_ptr<Dataset>> open_npz(const StoredRequest& request) {
  if (request.columns.has_fields()) return open_named<list_npz_arrays>(request, "npz");
  LOCKSTEP_ASSIGN_OR_RETURN(const NpzPair pair, find_npz_pair(request.path, request.split));
  return open_npz_dataset(pair, request.format, request.cache_dir, request.progress);
}

void add_array(const NpzArray& array, std::vector<Summed>& out) {
  const auto ignore = [](std::span<const uint8_t>, uint64_t) { return Status::ok(); };
  out.push_back({array.path + " (" + array.name + ")", array.path,
                 [entry = array.entry, ignore](std::span<const uint8_t> file) {
                   if (entry.offset > file.size() ||
                       entry.stored_bytes > file.size() - entry.offset)
                     return bad("changed while it was verified; try again");
                   const auto stored = file.subspan(entry.offset, entry.stored_bytes);
                   return entry.is_deflated ? inflate_bare(stored, entry.bytes, entry.crc, ignore)
                                            : check_crc32(stored, entry.crc);
                 }});
}

}  // namespace

Result<NpzPair> find_npz_pair(const std::string& path, Split split) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto archives, archives_of(path));
  std::vector<NpzArray> arrays;
  for (const std::string& archive : archives)
    LOCKSTEP_RETURN_IF_ERROR(list_arrays(archive, arrays));
  std::vector<NamedArray> names;
  for (const NpzArray& array : arrays)
    names.push_back({array.name, fs::path(array.path).filename().string()});
  LOCKSTEP_ASSIGN_OR_RETURN(const ArrayPair pair, choose_arrays(names, split, path, ""));
  return NpzPair{arrays[pair.images], arrays[pair.labels], pair.serves_both};
}

Result<std::vector<ListedArray>> list_npz_arrays(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto archives, archives_of(path));
  std::vector<NpzArray> arrays;
  for (const std::string& archive : archives)
    LOCKSTEP_RETURN_IF_ERROR(list_arrays(archive, arrays));
  std::vector<ListedArray> listed;
  for (const NpzArray& array : arrays)
    listed.push_back({array.name, fs::path(array.path).filename().string(),
                      [array](const std::string& cache_dir, const ProgressFn& progress) {
                        return open_array(array, cache_dir, progress);
                      }});
  return listed;
}

bool is_npz(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return ends_like(path, kArchive);
  const auto archives = archives_of(path);
  return archives.is_ok() && !archives->empty();
}

Result<std::unique_ptr<Dataset>> open_npz_dataset(const NpzPair& pair, const std::string& axes,
                                                  const std::string& cache_dir,
                                                  const ProgressFn& progress) {
  LOCKSTEP_ASSIGN_OR_RETURN(NpyArray images, open_array(pair.images, cache_dir, progress));
  LOCKSTEP_ASSIGN_OR_RETURN(NpyArray labels, open_array(pair.labels, cache_dir, progress));
  return make_npy_dataset(std::move(images), std::move(labels), "npz", axes, cache_dir, progress);
}

constinit const DataFormat kNpzFormat{.name = "npz",
                                      .in_directory = {{{DirectoryStep::kNames, npz_in}}},
                                      .of_file = {{{FileStep::kEnding, npz_at}}},
                                      .open = open_npz,
                                      .has_eval = pair_has_eval<find_npz_pair>,
                                      .serves_both = pair_serves_both<find_npz_pair>,
                                      .named_splits = named_splits_of<list_npz_arrays>,
                                      .sums = pair_sums<find_npz_pair, add_array>};

}  // namespace lockstep::data
