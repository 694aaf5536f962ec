#include "data/files/inflate_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

#include "comm/base/byte_units.h"
#include "comm/base/descriptors.h"
#include "comm/base/file.h"
#include "comm/base/hash.h"
#include "data/base/file_errors.h"
#include "data/base/one_at_a_time.h"
#include "data/base/sampled_hash.h"
#include "data/io/file_system.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

constexpr size_t kFieldBytes = 40;  // of the trailer, before the checksum
constexpr char kCacheMagic[8] = {'L', 'K', 'S', 'I', 'N', 'F', 'L', '1'};
constexpr uint64_t kBytesPerLook = kMib;  // at the room that is left
constexpr auto kAbandonedAfter = std::chrono::hours(1);

using TrailerFields = std::array<uint8_t, kFieldBytes>;

void put64(uint8_t* out, uint64_t value) {
  for (int i = 0; i < 8; ++i) out[i] = static_cast<uint8_t>(value >> (8 * i));
}

uint64_t mark_of(const Compressed& what, const MappedFile& source) {
  if (what.mark) return *what.mark;
  Xxh3 hash;
  hash_sampled(source.bytes(), kWholeContentBytes, hash);
  return mark_from(hash);
}

TrailerFields make_fields(const MappedFile& source, uint64_t mark, uint64_t content_bytes) {
  TrailerFields fields{};
  std::memcpy(fields.data(), kCacheMagic, sizeof kCacheMagic);
  put64(fields.data() + 8, content_bytes);
  put64(fields.data() + 16, source.bytes().size());
  put64(fields.data() + 24, static_cast<uint64_t>(source.modified_ns()));
  put64(fields.data() + 32, mark);
  return fields;
}

bool is_valid(const MappedFile& cached, const MappedFile& source, uint64_t mark) {
  const auto bytes = cached.bytes();
  if (bytes.size() < kTrailerBytes) return false;
  const uint64_t content_bytes = bytes.size() - kTrailerBytes;
  const TrailerFields wanted = make_fields(source, mark, content_bytes);
  if (std::memcmp(bytes.data() + content_bytes, wanted.data(), wanted.size()) != 0) return false;
  const std::string checksum = xxh3_hex(bytes.data(), content_bytes + kFieldBytes);
  return std::memcmp(bytes.data() + content_bytes + kFieldBytes, checksum.data(),
                     checksum.size()) == 0;
}

Status cannot_write(const std::string& path, int error) {
  return Status(Code::kInternal, "cannot write " + path + ": " + errno_text(error) +
                                     "; make room there, or set data.cache_dir to another place");
}

// Other writers to this disk, such as a coordinator with its journal, must not run out of space.
Status check_room(const std::string& path, uint64_t wanted) {
  const auto disk = disk_room(path);
  if (!disk || disk->free_bytes >= wanted) return Status::ok();
  return {Code::kInternal, "cannot write " + path + ": only " + std::to_string(disk->free_bytes) +
                               " bytes are left on its disk; make room there, or set "
                               "data.cache_dir to another place"};
}

// A file without a name of its own yet: removed unless it was given one.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& final_path) : path_(final_path + ".tmp.XXXXXX") {
    fd_ = ::mkostemp(path_.data(), O_CLOEXEC);
    error_ = errno;
  }
  ~TemporaryFile() {
    if (fd_ < 0) return;
    ::close(fd_);
    if (!renamed_) ::unlink(path_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  Status opened() const { return fd_ >= 0 ? Status::ok() : cannot_write(path_, error_); }

  Status append(const uint8_t* data, size_t bytes) {
    return write_all(fd_, {reinterpret_cast<const char*>(data), bytes})
               ? Status::ok()
               : cannot_write(path_, errno);
  }

  Status publish_as(const std::string& final_path) {
    // Workers of other users may read it; mkostemp makes it private.
    if (::fchmod(fd_, 0644) != 0 || ::fsync(fd_) != 0) return cannot_write(path_, errno);
    if (::rename(path_.c_str(), final_path.c_str()) != 0) return cannot_write(final_path, errno);
    renamed_ = true;
    return sync_directory(fs::path(final_path).parent_path().string());
  }

 private:
  std::string path_;
  int fd_ = -1;
  int error_ = 0;
  bool renamed_ = false;
};

// "a.npz (x_train)".
std::string name_of(const Compressed& what, const std::string& path) {
  return path + (what.member.empty() ? "" : " (" + what.member + ")");
}

Status make_cache_file(const std::string& path, const Compressed& what, const MappedFile& source,
                       uint64_t mark, const ProgressFn& progress) {
  TemporaryFile file(path);
  LOCKSTEP_RETURN_IF_ERROR(file.opened());
  Xxh3 hash;
  uint64_t done = 0;
  const std::string said = what.verb + " " + name_of(what, fs::path(what.path).filename().string());
  const ByteSink sink = [&](std::span<const uint8_t> piece, uint64_t bytes) -> Status {
    hash.update(piece.data(), piece.size());
    const bool is_to_look =
        done == 0 || done / kBytesPerLook != (done + piece.size()) / kBytesPerLook;
    done += piece.size();
    if (is_to_look)
      LOCKSTEP_RETURN_IF_ERROR(check_room(fs::path(path).parent_path().string(), what.room_bytes));
    if (progress) progress(said, done, bytes);
    return file.append(piece.data(), piece.size());
  };
  if (const Status status = what.inflate(sink); !status.is_ok())
    return status.code() == Code::kBadData ? about(name_of(what, what.path), status) : status;
  const TrailerFields fields = make_fields(source, mark, done);
  hash.update(fields.data(), fields.size());
  const std::string checksum = hash.hex();
  LOCKSTEP_RETURN_IF_ERROR(file.append(fields.data(), fields.size()));
  LOCKSTEP_RETURN_IF_ERROR(
      file.append(reinterpret_cast<const uint8_t*>(checksum.data()), checksum.size()));
  return file.publish_as(path);
}

// Removes files that killed processes left. A young file may belong to a living process.
void remove_abandoned(const std::string& path) {
  std::error_code error;
  const std::string prefix = fs::path(path).filename().string() + ".tmp.";
  std::vector<fs::path> abandoned;
  for (fs::directory_iterator it(fs::path(path).parent_path(), error), end; !error && it != end;
       it.increment(error)) {
    if (it->path().filename().string().rfind(prefix, 0) != 0) continue;
    std::error_code gone;
    const auto written = fs::last_write_time(it->path(), gone);
    if (!gone && fs::file_time_type::clock::now() - written > kAbandonedAfter)
      abandoned.push_back(it->path());
  }
  for (const fs::path& file : abandoned) fs::remove(file, error);
}

}  // namespace

Status check_cache(const std::string& cache_dir, const std::string& name) {
  if (!cache_dir.empty()) return Status::ok();
  return {Code::kUsage,
          "cannot inflate " + name + " without a cache directory; set data.cache_dir"};
}

uint64_t mark_from(const Xxh3& hash) {
  return std::strtoull(hash.hex().substr(0, 16).c_str(), nullptr, 16);
}

uint64_t last_bytes(const MappedFile& source) {
  uint64_t mark = 0;  // little-endian, as in the file
  const auto bytes = source.bytes();
  if (bytes.size() >= sizeof mark)
    std::memcpy(&mark, bytes.data() + bytes.size() - sizeof mark, sizeof mark);
  return mark;
}

std::string inflated_path(const Compressed& what, const std::string& cache_dir) {
  if (!what.name.empty()) return (fs::path(cache_dir) / what.name).string();
  std::error_code error;
  fs::path whole = fs::weakly_canonical(what.path, error);
  if (error) whole = what.path;
  // The hash keeps files of the same name in different places apart; the name is for people.
  std::string place = whole.native();
  for (const std::string* more : {&what.member, &what.means})
    if (!more->empty()) place += std::string(1, '\0') + *more;
  std::string name = whole.filename().string();
  if (name.size() > 3 && name.ends_with(".gz")) name.resize(name.size() - 3);
  return (fs::path(cache_dir) /
          (name + "." + xxh3_hex(place.data(), place.size()).substr(0, 16) + "." + what.ending))
      .string();
}

Result<MappedFile> open_inflated(const Compressed& what, const MappedFile& source,
                                 const std::string& cache_dir, const ProgressFn& progress) {
  const std::string path = inflated_path(what, cache_dir);
  const uint64_t mark = mark_of(what, source);
  if (auto cached = MappedFile::open(path);
      cached.is_ok() && is_valid(cached.value(), source, mark))
    return cached;
  std::error_code error;
  fs::create_directories(cache_dir, error);
  if (error) return cannot_write(cache_dir, error.value());
  // One process makes what takes long; the others then find it.
  std::optional<OneAtATime> alone;
  if (!what.means.empty()) {
    alone.emplace(path);
    if (auto cached = MappedFile::open(path);
        cached.is_ok() && is_valid(cached.value(), source, mark))
      return cached;
  }
  remove_abandoned(path);
  LOCKSTEP_RETURN_IF_ERROR(make_cache_file(path, what, source, mark, progress));
  // Read back and checked: what was written is what will be used.
  LOCKSTEP_ASSIGN_OR_RETURN(MappedFile made, MappedFile::open(path));
  if (!is_valid(made, source, mark_of(what, source)))
    return Status(Code::kInternal, path + " changed right after it was written; is " + what.path +
                                       " being replaced, or the disk failing?");
  return made;
}

std::span<const uint8_t> content_of(std::span<const uint8_t> file, bool is_copy) {
  return is_copy ? file.first(file.size() - std::min(file.size(), kTrailerBytes)) : file;
}

std::string shown_name(const std::string& path, const std::map<size_t, std::string>& copied,
                       size_t i) {
  const auto from = copied.find(i);
  return from == copied.end() ? path : from->second + " (inflated)";
}

}  // namespace lockstep::data
