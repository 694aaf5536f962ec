#include "data/read/checksums.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <mutex>
#include <system_error>

#include "data/base/file_errors.h"
#include "data/files/gzip.h"
#include "data/files/inflate_cache.h"
#include "data/files/mapped_file.h"
#include "data/formats/arrays/idx_inflate.h"
#include "data/formats/arrays/idx_pair.h"
#include "data/formats/arrays/npz_pair.h"
#include "data/formats/images/look_at_image.h"
#include "data/formats/shards/tfrecord.h"
#include "data/source/view/remote_files.h"

namespace lockstep::data {
namespace {

constexpr char kGzipEnding[] = ".gz";

// A file of the data set as a whole; what is far away comes into a file that goes when it is no
// longer mapped.
Result<MappedFile> open_whole(const EncodedSource& source, const std::string& path) {
  if (source.far == nullptr || !source.far->has_only_place(path)) return MappedFile::open(path);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string copy, source.far->copy_of(path));
  auto file = MappedFile::open(copy);
  std::error_code ignored;
  std::filesystem::remove(copy, ignored);
  return file;
}

struct SamplesOfFile {
  uint64_t first = 0;
  uint64_t count = 0;
};

// They follow each other file by file.
std::vector<SamplesOfFile> samples_by_file(const ExtentIndex& index) {
  std::vector<SamplesOfFile> files(index.files());
  for (uint64_t i = 0; i < index.samples(); ++i) {
    SamplesOfFile& file = files[index.extent(i).file];
    if (file.count++ == 0) file.first = i;
  }
  return files;
}

// A record holds one sample (tfrecord.h).
Status check_records(const std::string& name, const MappedFile& file, bool is_copy,
                     const SamplesOfFile& samples, ChecksumReport& out) {
  uint64_t record = 0;
  const Status walked = walk_tfrecord(
      content_of(file.bytes(), is_copy), [&](uint64_t offset, std::span<const uint8_t> data) {
        if (!has_good_checksum(data))
          out.samples.emplace_back(
              samples.first + record,
              place_text(name, offset) + " has a record whose checksum is wrong: it is damaged");
        out.bytes += data.size();
        ++record;
        return Status::ok();
      });
  LOCKSTEP_RETURN_IF_ERROR(file.unchanged());  // which would explain it
  if (!walked.is_ok()) return about(name, walked);
  if (record == samples.count) return Status::ok();
  return bad(name + " has " + std::to_string(record) + " records, and had " +
             std::to_string(samples.count) + " when it was indexed; verify it again");
}

void add_to(ChecksumReport& all, ChecksumReport&& part) {
  all.bytes += part.bytes;
  std::move(part.samples.begin(), part.samples.end(), std::back_inserter(all.samples));
  std::move(part.files.begin(), part.files.end(), std::back_inserter(all.files));
}

// What has one checksum: a file, or an array in one.
struct Summed {
  std::string name;  // for messages
  std::string path;
  std::function<Status(std::span<const uint8_t> file)> check;
};

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

Result<std::vector<Summed>> summed_files(const std::string& path, const std::string& format,
                                         Split split) {
  std::vector<Summed> found;
  if (format == "npz" || (format.starts_with("npy") && is_npz(path))) {
    LOCKSTEP_ASSIGN_OR_RETURN(const NpzPair pair, find_npz_pair(path, split));
    add_array(pair.images, found);
    add_array(pair.labels, found);
  } else if (format == "idx") {
    LOCKSTEP_ASSIGN_OR_RETURN(const IdxPair pair, find_idx_pair(path, split));
    add_gzipped(pair.images, found);
    add_gzipped(pair.labels, found);
  }
  return found;
}

}  // namespace

Result<ChecksumReport> check_record_sums(const ExtentIndex& index, const EncodedSource& source,
                                         ThreadTeam& team, const ProgressFn& progress) {
  ChecksumReport all;
  if (source.format != "tfrecord") return all;
  const std::vector<SamplesOfFile> samples = samples_by_file(index);
  ProgressOfMany shown("comparing checksums in " + source.shown_directory, index.files(), progress);
  std::mutex mutex;
  const auto compare = [&](uint32_t thread, uint64_t i) -> Status {
    const std::string path = source.directory + "/" + std::string(index.file_name(i));
    LOCKSTEP_ASSIGN_OR_RETURN(const MappedFile file, open_whole(source, path));
    ChecksumReport part;
    LOCKSTEP_RETURN_IF_ERROR(check_records(shown_name(path, source.copied, i), file,
                                           source.copied.contains(i), samples[i], part));
    const std::lock_guard lock(mutex);
    add_to(all, std::move(part));
    shown.one_done(thread);
    return Status::ok();
  };
  LOCKSTEP_RETURN_IF_ERROR(team.run(index.files(), compare));
  std::sort(all.samples.begin(), all.samples.end());
  return all;
}

Result<ChecksumReport> check_file_sums(const std::string& path, const std::string& format,
                                       Split split, ThreadTeam& team, const ProgressFn& progress) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<Summed> files, summed_files(path, format, split));
  ProgressOfMany shown("comparing checksums in " + path, files.size(), progress);
  std::vector<Status> results(files.size());
  std::atomic<uint64_t> bytes{0};
  const auto compare = [&](uint32_t thread, uint64_t i) -> Status {
    LOCKSTEP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(files[i].path));
    results[i] = files[i].check(file.bytes());
    LOCKSTEP_RETURN_IF_ERROR(file.unchanged());  // which would explain it
    bytes += file.bytes().size();
    shown.one_done(thread);
    return Status::ok();
  };
  LOCKSTEP_RETURN_IF_ERROR(team.run(files.size(), compare));
  ChecksumReport report;
  report.bytes = bytes;
  for (size_t i = 0; i < files.size(); ++i)
    if (!results[i].is_ok()) report.files.push_back(about(files[i].name, results[i]).message());
  return report;
}

}  // namespace lockstep::data
