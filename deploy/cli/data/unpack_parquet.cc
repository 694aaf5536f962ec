#include "deploy/cli/data/unpack_parquet.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <system_error>
#include <vector>

#include "comm/base/descriptors.h"
#include "comm/base/file.h"
#include "comm/base/hash.h"
#include "data/arrow/file_layout.h"
#include "data/base/change_mark.h"
#include "data/base/file_errors.h"
#include "data/base/modified_ns.h"
#include "data/base/split.h"
#include "data/base/thread_team.h"
#include "data/files/mapped_file.h"
#include "data/formats/tables/parquet_files.h"
#include "data/pack/hold_directory.h"
#include "deploy/agent/process.h"
#include "deploy/cli/data/parquet_columns.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kWhole = 1'000'000;  // as lockstep-parquet says how far it is

struct Source {
  std::string path;
  std::string name;  // below what was named
  uint64_t bytes = 0;
  std::string identity;  // of which file it is, as it is now
};

using PartFn = std::function<void(uint64_t part)>;  // of kWhole

Result<std::vector<Source>> find_sources(const std::string& path) {
  std::vector<Source> sources;
  std::error_code error;
  const bool is_directory = fs::is_directory(path, error);
  const fs::path base = is_directory ? fs::path(path) : fs::path(path).parent_path();
  for (const data::Split split : {data::Split::kTrain, data::Split::kEval}) {
    if (!is_directory && split == data::Split::kEval) break;
    const auto shards = data::find_parquet_shards(path, split);
    if (!shards.is_ok() && shards.status().code() == Code::kNoInput && is_directory) continue;
    LOCKSTEP_RETURN_IF_ERROR(shards.status());
    for (const std::string& name : shards->names) {
      Source& source = sources.emplace_back();
      source.path = shards->directory + "/" + name;
      source.name = fs::path(source.path).lexically_relative(base).string();
      struct stat info {};
      if (::stat(source.path.c_str(), &info) != 0)
        return Status(Code::kNoInput, source.path + " cannot be read: " + errno_text(errno));
      source.bytes = static_cast<uint64_t>(info.st_size);
      if (::access(source.path.c_str(), R_OK) != 0)
        return Status(Code::kNoInput, source.path + " cannot be read: " + errno_text(errno));
      source.identity = std::to_string(info.st_dev) + " " + std::to_string(info.st_ino) + " " +
                        std::to_string(info.st_size) + " " +
                        std::to_string(data::modified_ns(info)) + " " +
                        std::to_string(data::change_mark(info));
    }
  }
  return sources;
}

std::string stamp_of(const std::vector<Source>& sources, const data::ColumnNames& wanted) {
  std::string all = wanted.input + '\0' + wanted.label + '\0';
  for (const auto* names : {&wanted.inputs, &wanted.targets})
    for (const std::string& name : *names) all += "\n" + name;
  if (!wanted.weight.empty()) all += "\nweight " + wanted.weight;
  for (const Source& source : sources) all += source.name + '\0' + source.identity + '\0';
  return xxh3_hex(all.data(), all.size()).substr(0, 16);
}

// The words of a decoder, in memory: its error may be a full disk.
class Words {
 public:
  Words() : file_(::memfd_create("lockstep-parquet", MFD_CLOEXEC)) {}
  // For a child that gets no descriptors: opened before it executes the program.
  std::string path() const { return "/proc/self/fd/" + std::to_string(file_.get()); }
  std::string last() const { return last_words(path()); }

 private:
  const Descriptor file_;
};

// Starts `lockstep-parquet MODE FILE OUT DESCRIPTOR COLUMN...`.
Result<pid_t> start_decoder(const std::string& mode, const Source& source, const std::string& to,
                            int descriptor, const std::vector<size_t>& columns,
                            const Words& words) {
  ProcessSpec spec;
  spec.argv = {sibling_program("lockstep-parquet"), mode, source.path, to,
               std::to_string(descriptor)};
  for (const size_t column : columns) spec.argv.push_back(std::to_string(column));
  if (::access(spec.argv[0].c_str(), X_OK) != 0)
    return Status(Code::kConfig,
                  source.path + " is Parquet, and this Lockstep has no lockstep-parquet; run " +
                      "deploy/install_deps.sh, and build again");
  spec.output_path = words.path();
  spec.parent_death_signal = SIGKILL;
  spec.kept_descriptor = descriptor;
  return start_process(spec);
}

// How it ended, and what it said.
Status wait_for(pid_t pid, const Source& source, const std::string& to, const Words& words) {
  const ProcessEnd end = wait_for_end(pid);
  if (end.is_success()) return Status::ok();
  const std::string said = words.last();
  if (end.exit_code == 65) return {Code::kBadData, source.path + " is not valid Parquet: " + said};
  if (end.exit_code == 70) return {Code::kInternal, "cannot write " + to + ": " + said};
  if (end.exit_code == 78) return {Code::kConfig, source.path + " is Parquet: " + last_line(said)};
  return {Code::kInternal, source.path + " was not decoded: lockstep-parquet " + end.text() +
                               (said.empty() ? "" : ", after saying: " + said)};
}

// Runs lockstep-parquet once, until it has ended. Removes what a failed call leaves of `to`.
Status decode(const std::string& mode, const Source& source, const std::string& to,
              const std::vector<size_t>& columns, const PartFn& part) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    return {Code::kInternal, "cannot make a pipe: " + errno_text(errno)};
  const Descriptor read_end(ends[0]);
  const Words words;
  pid_t pid = 0;
  {
    const Descriptor write_end(ends[1]);  // the decoder alone holds it then
    LOCKSTEP_ASSIGN_OR_RETURN(pid,
                              start_decoder(mode, source, to, write_end.get(), columns, words));
  }
  for (;;) {  // whole numbers: so few bytes are written at once
    uint64_t done = 0;
    const ssize_t n = ::read(read_end.get(), &done, sizeof done);
    if (n < 0 && errno == EINTR) continue;
    if (n != sizeof done) break;
    part(std::min(done, kWhole));
  }
  Status status = wait_for(pid, source, to, words);
  if (!status.is_ok()) ::unlink(to.c_str());
  return status;
}

// Which columns hold the samples.
Result<ParquetColumns> columns_of(const Source& source, const data::ColumnNames& wanted,
                                  const std::string& types_path) {
  LOCKSTEP_RETURN_IF_ERROR(decode("schema", source, types_path, {}, [](uint64_t) {}));
  const auto choose = [&]() -> Result<ParquetColumns> {
    LOCKSTEP_ASSIGN_OR_RETURN(const data::MappedFile types, data::MappedFile::open(types_path));
    LOCKSTEP_ASSIGN_OR_RETURN(const data::ArrowLayout layout, data::parse_arrow(types.bytes()));
    return parquet_columns(layout.schema, wanted);
  };
  auto columns = choose();
  std::error_code ignored;
  fs::remove(types_path, ignored);
  if (!columns.is_ok()) return data::about(source.path, columns.status());
  return columns;
}

// After a power cut, too, a file that has its name is whole.
Status sync_file(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() >= 0 && ::fsync(file.get()) == 0) return Status::ok();
  return {Code::kInternal, "cannot write " + path + ": " + errno_text(errno)};
}

struct Wanted {
  const data::ColumnNames& columns;
  const ParquetColumns& of_first;  // of the files; the others are as it is, a table or none
};

Status unpack(const Source& source, bool is_first, const Wanted& wanted, const std::string& to,
              const PartFn& part) {
  std::error_code error;
  if (fs::exists(to, error)) return Status::ok();
  fs::create_directories(fs::path(to).parent_path(), error);
  if (error) return {Code::kInternal, "cannot make a directory for " + to + ": " + error.message()};
  ParquetColumns chosen = wanted.of_first;
  if (!is_first) {
    LOCKSTEP_ASSIGN_OR_RETURN(chosen, columns_of(source, wanted.columns, to + ".types"));
  }
  if (chosen.is_table != wanted.of_first.is_table)
    return data::bad(source.path +
                     " has other columns than the files before it; give all files the same");
  LOCKSTEP_RETURN_IF_ERROR(
      decode(chosen.is_table ? "text" : "copy", source, to + ".part", chosen.columns, part));
  LOCKSTEP_RETURN_IF_ERROR(sync_file(to + ".part"));
  fs::rename(to + ".part", to, error);
  if (error) return {Code::kInternal, "cannot rename " + to + ".part: " + error.message()};
  return Status::ok();
}

// Several at a time.
Status unpack_all(const std::vector<Source>& sources, const Wanted& wanted,
                  const std::function<std::string(const Source&)>& place, uint32_t threads,
                  const std::string& what, const data::ProgressFn& progress) {
  uint64_t total = 0;
  for (const Source& source : sources) total += source.bytes;
  std::atomic<uint64_t> done{0};
  const auto used = static_cast<uint32_t>(
      std::clamp<uint64_t>(sources.size(), 1, std::max(threads, uint32_t{1})));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto team, data::ThreadTeam::start(used, "parquet"));
  return team->run(sources.size(), [&](uint32_t thread, uint64_t i) {
    const Source& source = sources[i];
    uint64_t said = 0;
    const auto reached = [&](uint64_t part) {
      const auto bytes = static_cast<uint64_t>(static_cast<double>(source.bytes) *
                                               static_cast<double>(part) / kWhole);
      done += bytes - said;
      said = bytes;
      if (thread == 0 && progress) progress(what, done, total);
    };
    Status status = unpack(source, i == 0, wanted, place(source), reached);
    if (status.is_ok()) reached(kWhole);
    return status;
  });
}

}  // namespace

Result<UnpackedParquet> UnpackedParquet::make(const std::string& path, const std::string& to,
                                              const data::ColumnNames& wanted, uint32_t threads,
                                              const data::ProgressFn& progress) {
  std::error_code error;
  if (fs::exists(to, error) && !fs::is_directory(to, error))
    return Status(Code::kUsage, to + " is not a directory; name an empty or a new one");
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<Source> sources, find_sources(path));
  UnpackedParquet made;
  made.directory_ = to + ".unpacked";
  made.root_ = made.directory_ + "/" + stamp_of(sources, wanted);
  fs::create_directories(made.directory_, error);
  LOCKSTEP_ASSIGN_OR_RETURN(made.alone_, data::hold_directory(made.directory_));
  const auto first = columns_of(sources.front(), wanted, made.root_ + ".types");
  made.is_table_ = first.is_ok() && first->is_table;
  const auto place = [&](const Source& source) {
    const char* const ending = made.is_table_ ? ".csv" : ".arrow";
    return (fs::path(made.root_) / source.name).replace_extension(ending).string();
  };
  for (const Source& source : sources) made.places_.emplace_back(place(source), source.path);
  made.path_ = fs::is_directory(path, error) ? made.root_ : place(sources.front());
  Status status = first.status();
  if (status.is_ok())
    status = unpack_all(sources, {wanted, *first}, place, threads, "decoding Parquet of " + path,
                        progress);
  if (status.is_ok()) return made;
  // Directories stay where there is something in them.
  for (const std::string& one : {made.root_, made.directory_}) fs::remove(one, error);
  return status;
}

std::string UnpackedParquet::with_sources(std::string text) const {
  for (const auto& [place, source] : places_)
    for (size_t at = text.find(place); at != std::string::npos; at = text.find(place, at))
      text.replace(at, place.size(), source);
  return text;
}

void UnpackedParquet::remove() const {
  std::error_code ignored;
  fs::remove_all(root_, ignored);
  fs::remove_all(cache(), ignored);
  fs::remove(directory_, ignored);
}

}  // namespace lockstep
