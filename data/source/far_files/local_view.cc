#include "data/source/far_files/local_view.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>
#include <system_error>
#include <thread>

#include "comm/base/byte_units.h"
#include "comm/base/descriptors.h"
#include "comm/base/file.h"
#include "comm/base/hash.h"
#include "data/io/file_system.h"
#include "data/source/base/at_once.h"
#include "data/source/far_files/download.h"

namespace lockstep::source {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kHeadBytes = 4 * kKib;  // of files that are known by their first bytes

Status cannot_write_view(const std::string& path) {
  return {Code::kInternal, "cannot write " + path + ": " + errno_text(errno) +
                               "; make room there, or set data.cache_dir to another place"};
}

timespec time_spec(int64_t ns) {
  return {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
}

bool set_time(const std::string& path, int64_t ns) {
  const timespec times[2] = {time_spec(ns), time_spec(ns)};
  return ::utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW) == 0;
}

bool is_up_to_date(const std::string& path, const ObjectInfo& object) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return false;
  const int64_t time_ns = int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
  return static_cast<uint64_t>(info.st_size) == object.bytes &&
         time_ns == time_of_version(object.version);
}

// Only one process changes a view.
class ViewLock {
 public:
  explicit ViewLock(const std::string& path)
      : fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    while (fd_ >= 0 && ::flock(fd_, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  ~ViewLock() {
    if (fd_ >= 0) ::close(fd_);
  }
  ViewLock(const ViewLock&) = delete;
  ViewLock& operator=(const ViewLock&) = delete;

 private:
  int fd_;
};

// A file of the object's size with its first bytes, then a hole.
Status make_place(const ObjectInfo& object, bool with_head, ObjectCache& cache,
                  const std::string& path) {
  std::array<uint8_t, kHeadBytes> head{};
  const uint64_t bytes = with_head ? std::min(object.bytes, kHeadBytes) : 0;
  if (bytes > 0) LOCKSTEP_RETURN_IF_ERROR(cache.read(object, 0, bytes, head.data()));
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return cannot_write_view(path);
  const std::string_view content(reinterpret_cast<const char*>(head.data()), bytes);
  const bool is_written =
      write_all_at(fd, content, 0) && ::ftruncate(fd, static_cast<off_t>(object.bytes)) == 0;
  ::close(fd);
  return is_written ? Status::ok() : cannot_write_view(path);
}

Status check_room(const std::string& directory, uint64_t bytes) {
  const auto disk = bytes > 0 ? data::disk_room(directory) : std::nullopt;
  if (!disk || bytes <= disk->free_bytes) return Status::ok();
  return {Code::kConfig, "Lockstep reads these files as a whole, and they need " +
                             std::to_string(bytes) + " bytes on this machine, but the disk of " +
                             directory + " has " + std::to_string(disk->free_bytes) +
                             "; set data.cache_dir to a larger disk, or put the data into shards, "
                             "which Lockstep reads in parts"};
}

class View {
 public:
  View(const std::string& directory, const std::vector<ObjectInfo>& objects,
       const std::vector<Fetching>& fetching, ObjectCache& cache, uint32_t requests,
       const SourceProgressFn& progress)
      : directory_(directory),
        parts_(directory + ".part"),
        objects_(objects),
        fetching_(fetching),
        cache_(cache),
        requests_(requests),
        progress_(progress) {}

  Status update() {
    std::error_code error;
    fs::create_directories(directory_, error);
    fs::create_directories(parts_, error);
    if (error)
      return {Code::kInternal, "cannot make " + parts_ + ": " + error.message() +
                                   "; set data.cache_dir to a directory that this user can write"};
    find_old();
    std::vector<size_t> places;
    std::vector<size_t> whole;
    for (const size_t i : old_) (fetching_[i] == Fetching::kWhole ? whole : places).push_back(i);
    uint64_t bytes = 0;
    for (const size_t i : whole) bytes += objects_[i].bytes;
    LOCKSTEP_RETURN_IF_ERROR(check_room(parts_, bytes));
    LOCKSTEP_RETURN_IF_ERROR(remove_strangers());
    const Status made =
        at_once(requests_, places.size(), [&](uint64_t k) { return make_place_of(places[k]); });
    LOCKSTEP_RETURN_IF_ERROR(made);
    LOCKSTEP_RETURN_IF_ERROR(fetch_whole(whole, bytes));
    return stamp_directories();
  }

 private:
  std::string path_of(size_t i) const { return directory_ + "/" + objects_[i].name; }

  std::string part_of(size_t i) const {
    const std::string what = objects_[i].name + "\n" + objects_[i].version;
    return parts_ + "/" + xxh3_hex(what.data(), what.size());
  }

  void find_old() {
    for (size_t i = 0; i < objects_.size(); ++i) {
      if (fetching_[i] == Fetching::kLeft) continue;
      names_.insert(objects_[i].name);
      if (!is_up_to_date(path_of(i), objects_[i])) old_.push_back(i);
    }
    for (const std::string& name : names_)
      for (size_t at = name.find('/'); at != std::string::npos; at = name.find('/', at + 1))
        directories_.insert(name.substr(0, at));
  }

  // Removes files and directories that the source does not have, or no longer has.
  Status remove_strangers() const {
    std::error_code error;
    std::vector<fs::path> strangers;
    for (fs::recursive_directory_iterator it(directory_, error), end; !error && it != end;
         it.increment(error)) {
      const std::string name = it->path().native().substr(directory_.size() + 1);
      const bool is_directory = it->is_directory() && !it->is_symlink();
      if (is_directory ? directories_.count(name) > 0 : names_.count(name) > 0) continue;
      strangers.push_back(it->path());
      if (is_directory) it.disable_recursion_pending();
    }
    for (const fs::path& path : strangers) fs::remove_all(path, error);
    for (const std::string& name : directories_)
      fs::create_directories(directory_ + "/" + name, error);
    if (error)
      return {Code::kInternal, "cannot write below " + directory_ + ": " + error.message()};
    return Status::ok();
  }

  Status make_place_of(size_t i) const {
    const std::string part = part_of(i);
    const bool with_head = fetching_[i] == Fetching::kHeadFirst;
    LOCKSTEP_RETURN_IF_ERROR(make_place(objects_[i], with_head, cache_, part));
    return put(i, part);
  }

  Status put(size_t i, const std::string& part) const {
    if (!set_time(part, time_of_version(objects_[i].version)) ||
        ::rename(part.c_str(), path_of(i).c_str()) != 0)
      return cannot_write_view(path_of(i));
    return Status::ok();
  }

  Status fetch_whole(const std::vector<size_t>& whole, uint64_t total) const {
    std::atomic<uint64_t> done{0};
    const auto caller = std::this_thread::get_id();
    for (const size_t i : whole) {
      const std::string part = part_of(i);
      const auto has_read = [&](uint64_t bytes) {
        const uint64_t so_far = done.fetch_add(bytes) + bytes;
        // Only the caller gets progress, from its own thread.
        if (progress_ && std::this_thread::get_id() == caller)
          progress_("fetching " + objects_[i].name, so_far, total);
      };
      const auto read = [&](uint64_t offset, uint64_t bytes, uint8_t* out) {
        return cache_.read_once(objects_[i], offset, bytes, out);
      };
      LOCKSTEP_RETURN_IF_ERROR(download(objects_[i], read, requests_, part, has_read));
      LOCKSTEP_RETURN_IF_ERROR(put(i, part));
    }
    return Status::ok();
  }

  // An index remembers times of directories: they stand for the names and versions below.
  Status stamp_directories() const {
    std::map<std::string, std::string> below;
    below[""];
    for (size_t i = 0; i < objects_.size(); ++i) {
      if (fetching_[i] == Fetching::kLeft) continue;
      const std::string& name = objects_[i].name;
      for (size_t at = 0; at != std::string::npos; at = name.find('/', at + 1))
        below[name.substr(0, at)] += name.substr(at) + "\n" + objects_[i].version + "\n";
    }
    for (const auto& [name, names] : below) {
      const std::string path = name.empty() ? directory_ : directory_ + "/" + name;
      if (!set_time(path, time_of_version(names))) return cannot_write_view(path);
    }
    return Status::ok();
  }

  const std::string& directory_;
  const std::string parts_;
  const std::vector<ObjectInfo>& objects_;
  const std::vector<Fetching>& fetching_;
  ObjectCache& cache_;
  const uint32_t requests_;
  const SourceProgressFn& progress_;
  std::set<std::string> names_;
  std::set<std::string> directories_;
  std::vector<size_t> old_;
};

}  // namespace

int64_t time_of_version(const std::string& version) {
  // Any number would do; these are times that every file system can keep.
  const std::string hex = xxh3_hex(version.data(), version.size());
  const uint64_t seconds = std::stoull(hex.substr(0, 8), nullptr, 16) % 1'500'000'000;
  const uint64_t ns = std::stoull(hex.substr(8, 8), nullptr, 16) % 1'000'000'000;
  return static_cast<int64_t>((seconds + 1) * 1'000'000'000 + ns);
}

Status update_view(const std::string& directory, const std::vector<ObjectInfo>& objects,
                   const std::vector<Fetching>& fetching, ObjectCache& cache, uint32_t requests,
                   const SourceProgressFn& progress) {
  std::error_code error;
  fs::create_directories(fs::path(directory).parent_path(), error);
  const ViewLock alone(directory + ".lock");
  return View(directory, objects, fetching, cache, requests, progress).update();
}

}  // namespace lockstep::source
