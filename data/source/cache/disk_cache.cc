#include "data/source/cache/disk_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "data/io/file_system.h"
#include "data/source/cache/chunk_file.h"

namespace lockstep::source {
namespace {

namespace fs = std::filesystem;

static_assert(sizeof(std::atomic<uint64_t>) == sizeof(uint64_t) &&
              std::atomic<uint64_t>::is_always_lock_free);

constexpr uint64_t kPartFreedAtOnce = 20;  // of the limit: looking at all chunks takes a while
constexpr int64_t kAbandonedPartS = 600;   // an older part has no writer any more

int open_or_make(const std::string& path) {
  return ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

bool lock_file(int fd, int how) {
  while (fd >= 0 && ::flock(fd, how) != 0)
    if (errno != EINTR) return false;
  return fd >= 0;
}

// Finer than the kernel's own stamps: the order of uses decides which chunk goes.
timespec clock_now() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return now;
}

struct Kept {
  std::string path;
  uint64_t bytes = 0;
  int64_t time_ns = 0;
};

// Closing the file releases its lock.
class LockedFile {
 public:
  LockedFile(const std::string& path, int how) : fd_(open_or_make(path)) { lock_file(fd_, how); }
  ~LockedFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  LockedFile(const LockedFile&) = delete;
  LockedFile& operator=(const LockedFile&) = delete;

 private:
  int fd_;
};

std::vector<Kept> chunks_in(const std::string& directory) {
  std::vector<Kept> found;
  std::error_code error;
  const int64_t now_s = clock_now().tv_sec;
  for (fs::recursive_directory_iterator it(directory, error), end; !error && it != end;
       it.increment(error)) {
    struct stat info {};
    const std::string& path = it->path().native();
    // No chunks lie directly in the directory, or below "locks".
    if (it.depth() == 0 && it->path().filename() == "locks") it.disable_recursion_pending();
    if (it.depth() == 0 || ::lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    if (path.ends_with(kPartEnding)) {
      if (now_s - info.st_mtim.tv_sec > kAbandonedPartS) ::unlink(path.c_str());
      continue;
    }
    found.push_back({path, static_cast<uint64_t>(info.st_size),
                     int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec});
  }
  return found;
}

std::string gb_text(uint64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f GB", static_cast<double>(bytes) / 1e9);
  return text;
}

}  // namespace

DiskCache::DiskCache(std::string directory, const CacheOptions& options)
    : directory_(std::move(directory)), options_(options) {
  std::error_code error;
  fs::create_directories(directory_ + "/locks", error);
  if (error) return;
  in_use_fd_ = open_or_make(directory_ + "/in-use");
  const int fd = open_or_make(directory_ + "/usage");
  if (fd >= 0 && ::ftruncate(fd, sizeof(uint64_t)) == 0) {
    void* mapped = ::mmap(nullptr, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped != MAP_FAILED) shared_usage_ = static_cast<std::atomic<uint64_t>*>(mapped);
  }
  if (fd >= 0) ::close(fd);
  is_usable_ = true;
  // A process that is alone counts the chunks; from then on all processes share one count.
  const bool is_alone = lock_file(in_use_fd_, LOCK_EX | LOCK_NB);
  if (is_alone || shared_usage_ == nullptr) count_anew(0);
  lock_file(in_use_fd_, LOCK_SH);
}

DiskCache::~DiskCache() {
  if (shared_usage_ != nullptr) ::munmap(shared_usage_, sizeof(uint64_t));
  if (in_use_fd_ >= 0) ::close(in_use_fd_);
}

DiskCache::Lock::~Lock() {
  if (fd_ >= 0) ::close(fd_);
}

std::atomic<uint64_t>& DiskCache::usage() const {
  return shared_usage_ != nullptr ? *shared_usage_ : own_usage_;
}

uint64_t DiskCache::bytes() const {
  return usage().load();
}

std::string DiskCache::path_of(const std::string& id) const {
  return directory_ + "/" + id.substr(0, 2) + "/" + id;
}

bool DiskCache::read(const std::string& id, uint64_t offset, uint64_t bytes, uint8_t* out) {
  if (!is_usable_) return false;
  const std::string path = path_of(id);
  const ChunkRead got = read_chunk(path, id, offset, bytes, out);
  if (got == ChunkRead::kDamaged) {
    struct stat info {};
    if (::stat(path.c_str(), &info) == 0 && ::unlink(path.c_str()) == 0)
      usage() -= std::min(usage().load(), static_cast<uint64_t>(info.st_size));
  }
  if (got != ChunkRead::kRead) return false;
  if (options_.policy == CachePolicy::kLru) {
    const timespec times[2] = {clock_now(), clock_now()};
    (void)::utimensat(AT_FDCWD, path.c_str(), times, 0);
  }
  return true;
}

bool DiskCache::has(const std::string& id) const {
  return is_usable_ && ::access(path_of(id).c_str(), R_OK) == 0;
}

// A limit states how much of the disk belongs to the cache. Other writers to the disk, such as a
// journal, still need some of it.
uint64_t DiskCache::to_keep_free(uint64_t disk_bytes) const {
  const auto share =
      static_cast<uint64_t>(options_.keep_free_share * static_cast<double>(disk_bytes));
  return options_.limit_bytes == 0 ? share : std::min(share, options_.keep_free_bytes);
}

bool DiskCache::has_disk_room(uint64_t bytes) const {
  const auto disk = data::disk_room(directory_);
  return disk && disk->free_bytes >= bytes &&
         disk->free_bytes - bytes >= to_keep_free(disk->total_bytes);
}

std::string DiskCache::why_disk_keeps_nothing() const {
  if (!is_usable_)
    return "Lockstep cannot make the directory " + directory_ +
           ", so all remote data are fetched anew in each epoch; set data.cache_dir to a directory "
           "on a local disk that the workers may write";
  if (has_disk_room(chunk_file_bytes(options_.chunk_bytes))) return "";
  const auto disk = data::disk_room(directory_);
  if (!disk) return "";
  std::string text = "the disk of " + directory_ + " has only " + gb_text(disk->free_bytes) +
                     " free of " + gb_text(disk->total_bytes) +
                     ", so the cache keeps nothing more there, and what " +
                     "it does not have is fetched anew in each epoch; make room, or set "
                     "data.cache_dir to another disk";
  if (options_.limit_bytes == 0)
    text += ". Without data.cache.limit_gb a tenth of the disk is left free; with it, at most " +
            gb_text(options_.keep_free_bytes);
  return text;
}

bool DiskCache::has_room(uint64_t bytes) const {
  if (!is_usable_) return false;
  const uint64_t needed = chunk_file_bytes(bytes);
  const bool fits_at_all = options_.limit_bytes == 0 || needed <= options_.limit_bytes;
  if (options_.policy != CachePolicy::kPin) return fits_at_all;
  return fits_at_all && has_disk_room(needed) &&
         (options_.limit_bytes == 0 || usage().load() + needed <= options_.limit_bytes);
}

// REQUIRES: no count_anew() meanwhile.
bool DiskCache::reserve(uint64_t bytes) {
  const uint64_t before = usage().fetch_add(bytes);
  const bool is_within = options_.limit_bytes == 0 || before + bytes <= options_.limit_bytes;
  if (is_within && has_disk_room(bytes)) return true;
  usage() -= bytes;
  return false;
}

// Makes room for `to_free` bytes, by the policy; 0: counts only.
void DiskCache::count_anew(uint64_t to_free) {
  const LockedFile alone(directory_ + "/scan", LOCK_EX);  // no process adds meanwhile
  std::vector<Kept> kept = chunks_in(directory_);
  uint64_t total = 0;
  for (const Kept& chunk : kept) total += chunk.bytes;
  const bool is_disk_full = to_free > 0 && !has_disk_room(to_free);
  uint64_t most = options_.limit_bytes > 0 ? options_.limit_bytes : total;
  if (is_disk_full) most = std::min(most, total);
  const uint64_t slack = most / kPartFreedAtOnce / std::max<uint64_t>(to_free, 1) * to_free;
  const bool is_over = total + to_free > most || is_disk_full;
  if (to_free > 0 && is_over) {
    const uint64_t wanted = most - std::min(most, to_free + slack);
    std::sort(kept.begin(), kept.end(),
              [](const Kept& a, const Kept& b) { return a.time_ns < b.time_ns; });
    for (const Kept& chunk : kept) {
      if (total <= wanted) break;
      if (::unlink(chunk.path.c_str()) == 0) total -= chunk.bytes;
    }
  }
  usage().store(total);
}

bool DiskCache::store(const std::string& id, std::span<const uint8_t> content) {
  if (!has_room(content.size())) return false;
  const uint64_t bytes = chunk_file_bytes(content.size());
  for (const bool is_first : {true, false}) {
    {
      const LockedFile adding(directory_ + "/scan", LOCK_SH);
      if (reserve(bytes)) return write(id, content);
    }
    if (is_first && options_.policy != CachePolicy::kPin) count_anew(bytes);
  }
  return false;
}

// REQUIRES: reserve() for the bytes of the file.
bool DiskCache::write(const std::string& id, std::span<const uint8_t> content) {
  const std::string path = path_of(id);
  std::error_code error;
  fs::create_directory(directory_ + "/" + id.substr(0, 2), error);
  const bool is_new = ::access(path.c_str(), F_OK) != 0;
  const bool is_written = write_chunk(path, id, content);
  const timespec times[2] = {clock_now(), clock_now()};
  if (is_written) (void)::utimensat(AT_FDCWD, path.c_str(), times, 0);
  if (!is_written || !is_new) usage() -= chunk_file_bytes(content.size());
  return is_written;
}

std::unique_ptr<DiskCache::Lock> DiskCache::lock(const std::string& id) const {
  const int fd = is_usable_ ? open_or_make(directory_ + "/locks/" + id.substr(id.size() - 2)) : -1;
  lock_file(fd, LOCK_EX);
  return std::make_unique<Lock>(fd);
}

}  // namespace lockstep::source
