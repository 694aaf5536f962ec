#include "deploy/cli/unpack_parquet.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <system_error>
#include <vector>

#include "comm/base/file.h"
#include "comm/base/hash.h"
#include "data/arrow/layout.h"
#include "data/index/arrow_choice.h"
#include "data/index/file_errors.h"
#include "data/index/mapped_file.h"
#include "data/index/parquet_files.h"
#include "data/index/read_at.h"
#include "data/index/thread_team.h"
#include "deploy/agent/process.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kWhole = 1'000'000;  // as lockstep-parquet says how far it is

struct Source {
  std::string path;
  std::string name;  // below what was named
  uint64_t bytes = 0;
  int64_t modified_ns = 0;
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
      source.modified_ns = data::modified_ns(info);
    }
  }
  return sources;
}

std::string stamp_of(const std::vector<Source>& sources) {
  std::string all;
  for (const Source& source : sources)
    all += source.name + '\0' + std::to_string(source.bytes) + ' ' +
           std::to_string(source.modified_ns) + '\0';
  return xxh3_hex(all.data(), all.size()).substr(0, 16);
}

// Starts `lockstep-parquet MODE FILE OUT DESCRIPTOR COLUMN...`.
Result<pid_t> start_decoder(const std::string& mode, const Source& source, const std::string& to,
                            int descriptor, const std::vector<size_t>& columns) {
  ProcessSpec spec;
  spec.argv = {sibling_program("lockstep-parquet"), mode, source.path, to,
               std::to_string(descriptor)};
  for (const size_t column : columns) spec.argv.push_back(std::to_string(column));
  if (::access(spec.argv[0].c_str(), X_OK) != 0)
    return Status(Code::kConfig,
                  source.path + " is Parquet, and this Lockstep was built without " +
                      "lockstep-parquet; run deploy/install_deps.sh, and build again");
  spec.output_path = to + ".log";
  spec.parent_death_signal = SIGKILL;
  spec.kept_descriptor = descriptor;
  return start_process(spec);
}

// How it ended, and what it said.
Status wait_for(pid_t pid, const Source& source, const std::string& log) {
  int wait_status = 0;
  while (::waitpid(pid, &wait_status, 0) < 0 && errno == EINTR) {
  }
  const ProcessEnd end = ProcessEnd::from_wait_status(wait_status);
  const std::string words = last_words(log);
  std::error_code ignored;
  fs::remove(log, ignored);
  if (end.is_success()) return Status::ok();
  if (end.exit_code == 65) return {Code::kBadData, source.path + " is no sound Parquet: " + words};
  return {Code::kInternal, source.path + " was not decoded: lockstep-parquet " + end.text() +
                               (words.empty() ? "" : ", after saying: " + words)};
}

// One call of lockstep-parquet, until it has ended.
Status decode(const std::string& mode, const Source& source, const std::string& to,
              const std::vector<size_t>& columns, const PartFn& part) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    return {Code::kInternal, "cannot make a pipe: " + errno_text(errno)};
  const data::Descriptor read_end(ends[0]);
  pid_t pid = 0;
  {
    const data::Descriptor write_end(ends[1]);  // the decoder alone holds it then
    LOCKSTEP_ASSIGN_OR_RETURN(pid, start_decoder(mode, source, to, write_end.get(), columns));
  }
  for (;;) {  // whole numbers: so few bytes are written at once
    uint64_t done = 0;
    const ssize_t n = ::read(read_end.get(), &done, sizeof done);
    if (n < 0 && errno == EINTR) continue;
    if (n != sizeof done) break;
    part(std::min(done, kWhole));
  }
  return wait_for(pid, source, to + ".log");
}

// Which columns hold the samples, rising.
Result<std::vector<size_t>> columns_of(const Source& source, const std::string& types_path) {
  LOCKSTEP_RETURN_IF_ERROR(decode("schema", source, types_path, {}, [](uint64_t) {}));
  const auto choose = [&]() -> Result<data::ArrowChoice> {
    LOCKSTEP_ASSIGN_OR_RETURN(const data::MappedFile types, data::MappedFile::open(types_path));
    LOCKSTEP_ASSIGN_OR_RETURN(const data::ArrowLayout layout, data::parse_arrow(types.bytes()));
    return data::choose_columns(layout.schema);
  };
  const auto choice = choose();
  std::error_code ignored;
  fs::remove(types_path, ignored);
  if (!choice.is_ok()) return data::about(source.path, choice.status());
  std::vector<size_t> columns = {choice->samples};
  if (choice->use != data::ArrowUse::kTokens) columns.push_back(choice->label);
  std::sort(columns.begin(), columns.end());
  return columns;
}

Status unpack(const Source& source, const std::string& to, const PartFn& part) {
  std::error_code error;
  if (fs::exists(to, error)) return Status::ok();
  fs::create_directories(fs::path(to).parent_path(), error);
  if (error) return {Code::kInternal, "cannot make a directory for " + to + ": " + error.message()};
  LOCKSTEP_ASSIGN_OR_RETURN(const auto columns, columns_of(source, to + ".types"));
  LOCKSTEP_RETURN_IF_ERROR(decode("copy", source, to + ".part", columns, part));
  fs::rename(to + ".part", to, error);
  if (error) return {Code::kInternal, "cannot rename " + to + ".part: " + error.message()};
  return Status::ok();
}

}  // namespace

Result<std::string> unpack_parquet(const std::string& path, const std::string& directory,
                                   uint32_t threads, const data::ProgressFn& progress) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<Source> sources, find_sources(path));
  std::error_code error;
  fs::create_directories(directory, error);
  if (error)
    return Status(Code::kUsage, "cannot make the directory " + directory + ": " + error.message());
  const data::Descriptor alone(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (::flock(alone.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    return Status(Code::kUsage, "another lockstep data pack is writing " + directory);
  const std::string root = directory + "/" + stamp_of(sources);
  const auto place = [&](const Source& source) {
    return (fs::path(root) / source.name).replace_extension(".arrow").string();
  };
  uint64_t total = 0;
  for (const Source& source : sources) total += source.bytes;
  std::atomic<uint64_t> done{0};
  const auto used = static_cast<uint32_t>(
      std::clamp<uint64_t>(sources.size(), 1, std::max(threads, uint32_t{1})));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto team, data::ThreadTeam::start(used, "parquet"));
  const Status unpacked = team->run(sources.size(), [&](uint32_t thread, uint64_t i) {
    const Source& source = sources[i];
    uint64_t said = 0;
    const auto reached = [&](uint64_t part) {
      const auto bytes = static_cast<uint64_t>(static_cast<double>(source.bytes) *
                                               static_cast<double>(part) / kWhole);
      done += bytes - said;
      said = bytes;
      if (thread == 0 && progress) progress("decoding Parquet of " + path, done, total);
    };
    const Status status = unpack(source, place(source), reached);
    if (status.is_ok()) reached(kWhole);
    return status;
  });
  if (!unpacked.is_ok()) {  // directories stay where there is something in them
    for (const std::string& one : {root, directory}) fs::remove(one, error);
    return unpacked;
  }
  return fs::is_directory(path, error) ? root : place(sources.front());
}

}  // namespace lockstep
