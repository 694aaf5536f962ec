#include "data/loader/checksums.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <mutex>
#include <system_error>

#include "data/base/file_errors.h"
#include "data/files/inflate_cache.h"
#include "data/files/mapped_file.h"
#include "data/formats/images/look_at_image.h"
#include "data/open/formats.h"
#include "data/source/far_files/remote_files.h"

namespace lockstep::data {
namespace {

// A whole file of the data set. A file that is far away is fetched into a copy that is gone when it
// is no longer mapped.
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
Status check_records(const RecordSums& sums, const std::string& name, const MappedFile& file,
                     bool is_copy, const SamplesOfFile& samples, ChecksumReport& out) {
  uint64_t record = 0;
  const Status walked = sums.walk(
      content_of(file.bytes(), is_copy), [&](uint64_t offset, std::span<const uint8_t> data) {
        if (!sums.is_good(data))
          out.samples.emplace_back(
              samples.first + record,
              place_text(name, offset) + " has a damaged record: its checksum is wrong");
        out.bytes += data.size();
        ++record;
        return Status::ok();
      });
  LOCKSTEP_RETURN_IF_ERROR(file.unchanged());  // a change would explain it
  if (!walked.is_ok()) return about(name, walked);
  if (record == samples.count) return Status::ok();
  return bad(name + " has " + std::to_string(record) + " records, but had " +
             std::to_string(samples.count) + " when Lockstep indexed it; verify it again");
}

void add_to(ChecksumReport& all, ChecksumReport&& part) {
  all.bytes += part.bytes;
  std::move(part.samples.begin(), part.samples.end(), std::back_inserter(all.samples));
  std::move(part.files.begin(), part.files.end(), std::back_inserter(all.files));
}

}  // namespace

Result<ChecksumReport> check_record_sums(const ExtentIndex& index, const EncodedSource& source,
                                         ThreadTeam& team, const ProgressFn& progress) {
  ChecksumReport all;
  const RecordSums* sums = find_data_format(source.format)->record_sums;
  if (sums == nullptr) return all;
  const std::vector<SamplesOfFile> samples = samples_by_file(index);
  ProgressOfMany shown("comparing checksums in " + source.shown_directory, index.files(), progress);
  std::mutex mutex;
  const auto compare = [&](uint32_t thread, uint64_t i) -> Status {
    const std::string path = source.directory + "/" + std::string(index.file_name(i));
    LOCKSTEP_ASSIGN_OR_RETURN(const MappedFile file, open_whole(source, path));
    ChecksumReport part;
    LOCKSTEP_RETURN_IF_ERROR(check_records(*sums, shown_name(path, source.copied, i), file,
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
  std::vector<Summed> files;
  // open_dataset() reports an unknown format.
  const bool is_known = find_data_format(format) != nullptr;
  if (const auto sums = is_known ? format_at(path, format).sums : nullptr; sums != nullptr) {
    LOCKSTEP_ASSIGN_OR_RETURN(files, sums(path, split));
  }
  ProgressOfMany shown("comparing checksums in " + path, files.size(), progress);
  std::vector<Status> results(files.size());
  std::atomic<uint64_t> bytes{0};
  const auto compare = [&](uint32_t thread, uint64_t i) -> Status {
    LOCKSTEP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(files[i].path));
    results[i] = files[i].check(file.bytes());
    LOCKSTEP_RETURN_IF_ERROR(file.unchanged());  // a change would explain it
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
