#include "data/formats/shards/packed_shards.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "comm/base/descriptors.h"
#include "comm/base/file.h"
#include "comm/base/hash.h"
#include "comm/base/limits.h"
#include "comm/base/text/lower_case.h"
#include "data/base/change_mark.h"
#include "data/base/file_errors.h"
#include "data/base/modified_ns.h"
#include "data/base/one_at_a_time.h"
#include "data/base/thread_team.h"
#include "data/files/cached_text.h"
#include "data/files/inflate_cache.h"
#include "data/files/mapped_file.h"
#include "data/formats/images/look_at_image.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

// Each may take kZstdWindowBytes.
constexpr uint32_t kMostInflateThreads = 8;

WholeCodec codec_of_file(const std::string& path) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::array<uint8_t, 4> begin{};
  const ssize_t got = fd.get() < 0 ? -1 : read_at(fd.get(), 0, begin.size(), begin.data());
  return got <= 0 ? WholeCodec::kNone
                  : whole_codec(std::span(begin).first(static_cast<size_t>(got)));
}

// Times may be copied with files. The checksum at a file's end then shows a change.
std::string last_bytes_of(const std::string& path) {
  struct stat info {};
  std::array<uint8_t, 8> end{};
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0 || ::fstat(fd.get(), &info) != 0) return {};
  const auto bytes = static_cast<uint64_t>(info.st_size);
  const uint64_t at = bytes - std::min<uint64_t>(bytes, end.size());
  const ssize_t got = read_at(fd.get(), at, end.size(), end.data());
  return got < 0 ? "" : xxh3_hex(end.data(), static_cast<size_t>(got));
}

// A directory for one set of files in one place, so that copies of another set never make this one
// look old. The files that describe the shards are part of the set.
Result<std::string> copies_directory(const Shards& shards, const std::string& cache_dir) {
  std::error_code error;
  std::string what = fs::weakly_canonical(shards.directory, error).native();
  for (size_t i = 0; i < shards.names.size(); ++i) {
    what += "\n" + shards.names[i];
    if (const auto packed = shards.packed.find(i); packed != shards.packed.end())
      what += std::string(1, '\0') + packed->second.file;
  }
  for (const std::string& name : shards.sources) {
    LOCKSTEP_ASSIGN_OR_RETURN(const MappedFile file,
                              MappedFile::open(shards.directory + "/" + name));
    what += "\n" + xxh3_hex(file.bytes().data(), file.bytes().size());
  }
  return cache_dir + "/" + kShardCopies + xxh3_hex(what.data(), what.size()).substr(0, 16);
}

// Identifies a file without its content. Empty if it is not there.
std::string stamp_text(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return {};
  return std::to_string(info.st_size) + " " + std::to_string(modified_ns(info)) + " " +
         std::to_string(change_mark(info)) + "\n";
}

std::string stamps_of_sources(const Shards& shards) {
  std::string text = "lockstep shards 2\n";
  for (size_t i = 0; i < shards.names.size(); ++i) {
    const auto packed = shards.packed.find(i);
    const bool is_packed = packed != shards.packed.end();
    const std::string path =
        shards.directory + "/" + (is_packed ? packed->second.file : shards.names[i]);
    text += last_bytes_of(path) + " " + stamp_text(path);
  }
  return text;
}

// A hash of the stamps of all sources and copies, short however many there are.
std::string stamps_of(const std::string& sources, const Shards& plain) {
  std::string text = sources;
  for (const std::string& name : plain.names) text += stamp_text(plain.directory + "/" + name);
  return xxh3_hex(text.data(), text.size());
}

Status cannot_write_shard(const std::string& path, const std::error_code& error) {
  return {Code::kInternal, "cannot write " + path + ": " + error.message() +
                               "; set data.cache_dir to a writable directory"};
}

// A shard that is not compressed stays where it is, and the copies link to it.
Status link_to(const std::string& path, const std::string& link) {
  std::error_code error;
  const fs::path target = fs::weakly_canonical(path, error);
  if (!fs::is_regular_file(target, error)) return {Code::kBadData, path + " is not a regular file"};
  if (fs::is_symlink(link, error) && fs::read_symlink(link, error) == target) return Status::ok();
  // Renamed, so that a reader that takes no lock always finds a link.
  const std::string made = link + "." + std::to_string(::getpid()) + ".tmp";
  fs::remove(made, error);
  fs::create_symlink(target, made, error);
  if (!error) fs::rename(made, link, error);
  return error ? cannot_write_shard(link, error) : Status::ok();
}

Status inflate_one(const std::string& path, const PackedShard& packed, const std::string& name,
                   const std::string& directory, const ProgressFn& progress) {
  LOCKSTEP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(path));
  if (packed.file_bytes && file.bytes().size() != *packed.file_bytes)
    return bad(path + " has " + std::to_string(file.bytes().size()) +
               " bytes, but the index says " + std::to_string(*packed.file_bytes) +
               "; copy it again");
  const auto inflate = [&](const ByteSink& sink) -> Status {
    Status status = inflate_whole(packed.codec, file.bytes(), packed.bytes, sink);
    if (const Status now = file.unchanged(); !now.is_ok())
      return {Code::kAborted, now.message()};  // explains it, and names the file
    return status;
  };
  Compressed what{path, "", inflate, name};
  if (packed.codec == WholeCodec::kGzip) what.mark = last_bytes(file);
  const auto made = open_inflated(what, file, directory, progress);
  if (made.status().code() == Code::kAborted) return {Code::kBadData, made.status().message()};
  return made.status();
}

Status put_there(const Shards& shards, size_t i, const std::string& directory,
                 const ProgressFn& progress) {
  const std::string& name = shards.names[i];
  std::error_code error;
  const fs::path parent = fs::path(directory + "/" + name).parent_path();
  fs::create_directories(parent, error);
  if (error) return cannot_write_shard(parent.string(), error);
  const auto packed = shards.packed.find(i);
  if (packed == shards.packed.end())
    return link_to(shards.directory + "/" + name, directory + "/" + name);
  return inflate_one(shards.directory + "/" + packed->second.file, packed->second, name, directory,
                     progress);
}

Status make_copies(const Shards& shards, const std::string& directory, const ProgressFn& progress) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      const auto team,
      ThreadTeam::start(std::min(usable_processors(), kMostInflateThreads), "inflate"));
  // Progress counts the bytes of a single shard, or the shards if there are many.
  const bool is_one = shards.names.size() == 1;
  const ProgressFn of_bytes = is_one ? progress : ProgressFn();
  const ProgressFn of_shards = is_one ? ProgressFn() : progress;
  ProgressOfMany shown("inflating the shards of " + shards.directory, shards.names.size(),
                       of_shards);
  return team->run(shards.names.size(), [&](uint32_t thread, uint64_t i) {
    Status status = put_there(shards, i, directory, of_bytes);
    shown.one_done(thread);
    return status;
  });
}

}  // namespace

std::string name_inflated(const std::string& name) {
  if (ends_like(name, ".tgz")) return name.substr(0, name.size() - 4) + ".tar";
  return ends_like(name, ".gz") ? name.substr(0, name.size() - 3) : name;
}

Status find_packed(Shards& shards) {
  std::map<std::string, PackedShard> by_name;
  for (const std::string& name : shards.names) {
    const WholeCodec codec = codec_of_file(shards.directory + "/" + name);
    const bool is_packed = codec != WholeCodec::kNone;
    // In the order of names the plain shard comes before its compressed twin, and is kept.
    const auto [there, is_new] = by_name.emplace(is_packed ? name_inflated(name) : name,
                                                 PackedShard{codec, is_packed ? name : "", {}, {}});
    if (!is_new && is_packed && there->second.codec != WholeCodec::kNone)
      return bad(shards.directory + " has " + there->second.file + " and " + name +
                 ", which both inflate to " + there->first + "; leave one of them there");
  }
  shards.names.clear();
  shards.packed.clear();
  for (auto& [name, shard] : by_name) {
    if (shard.codec != WholeCodec::kNone) shards.packed.emplace(shards.names.size(), shard);
    shards.names.push_back(name);
  }
  return Status::ok();
}

Status check_packed_are_here(const Shards& shards, const source::RemoteFiles* far) {
  if (shards.packed.empty() || far == nullptr) return Status::ok();
  const PackedShard& packed = shards.packed.begin()->second;
  const auto is_place = [&](const std::string& name) {
    return far->has_only_place(shards.directory + "/" + name);
  };
  const bool is_any =
      is_place(packed.file) || std::any_of(shards.names.begin(), shards.names.end(), is_place);
  if (!is_any) return Status::ok();
  return bad(far->place() + " has " + packed.file +
             ", a compressed file; Lockstep cannot read single samples of it remotely, so copy the "
             "data to this machine, or unpack the file there (gunzip, zstd -d)");
}

Result<Shards> inflated_shards(const Shards& shards, const std::string& cache_dir,
                               const ProgressFn& progress) {
  if (shards.packed.empty()) return shards;
  const std::string first = shards.directory + "/" + shards.packed.begin()->second.file;
  LOCKSTEP_RETURN_IF_ERROR(check_cache(cache_dir, first));
  Shards plain;
  LOCKSTEP_ASSIGN_OR_RETURN(plain.directory, copies_directory(shards, cache_dir));
  plain.home = shards.directory;
  plain.names = shards.names;
  for (const auto& [i, packed] : shards.packed)
    plain.copied.emplace(i, shards.directory + "/" + packed.file);
  // Checking copies reads them whole. The process that did so leaves a note on the files as they
  // are, so processes that wait or come later, and a run that recovers, skip it.
  const std::string note = fs::path(plain.directory).filename().string() + ".checked";
  const auto is_checked = [&](const std::string& sources) {
    return cached_text(cache_dir, note) == stamps_of(sources, plain);
  };
  if (is_checked(stamps_of_sources(shards))) return plain;
  std::error_code error;
  fs::create_directories(plain.directory, error);
  if (error) return cannot_write_shard(plain.directory, error);
  // A copy that another process replaced would look as if it had been written to.
  const OneAtATime alone(plain.directory);
  const std::string sources = stamps_of_sources(shards);
  if (is_checked(sources)) return plain;
  LOCKSTEP_RETURN_IF_ERROR(make_copies(shards, plain.directory, progress));
  keep_text(cache_dir, note, stamps_of(sources, plain));
  return plain;
}

}  // namespace lockstep::data
