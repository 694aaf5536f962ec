#include "comm/run/directory/trust.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>
#include <utility>
#include <vector>

#include "comm/base/file.h"
#include "comm/base/text/shell_word.h"
#include "comm/run/directory/layout.h"

namespace lockstep {
namespace {

constexpr mode_t kWritableByOthers = S_IWGRP | S_IWOTH;

std::string or_say_so() {
  return std::string(". If its file system cannot say owners and modes, set ") +
         kTrustRunDirVariable + "=1 for every process of the run";
}

Status foreign(const std::string& path, uid_t owner) {
  return {Code::kConfig,
          path + " belongs to another user (uid " + std::to_string(owner) +
              "), and who can write it runs code as you: look at it, then chown -h " +
              std::to_string(::geteuid()) + " " + shell_word(path) +
              ", remove it, or choose another --run-dir" + or_say_so()};
}

Status writable(const std::string& path, const std::string& mended) {
  return {Code::kConfig, path +
                             " can be written by other users, and who can write it runs code as "
                             "you: chmod -R go-w " +
                             shell_word(mended) + or_say_so()};
}

// With umask 002 everything inside is the group's to write, and the directory itself keeps it out.
bool is_closed_to_others(const struct stat& directory) {
  return (directory.st_mode & (S_IXGRP | S_IXOTH)) == 0;
}

// A directory whose entries are still to be looked at.
struct Place {
  std::string path;
  bool is_closed;  // others cannot come to what lies in it
  bool is_cache;   // links in it lead to files of the data
};

class Walk {
 public:
  explicit Walk(const std::string& run_dir) : run_dir_(run_dir) {}

  Status run() {
    struct stat found {};
    if (::lstat(run_dir_.c_str(), &found) != 0) {
      if (errno == ENOENT) return Status::ok();
      return {Code::kConfig, "cannot look at " + run_dir_ + ": " + errno_text(errno)};
    }
    LOCKSTEP_RETURN_IF_ERROR(check(found, {run_dir_, false, false}));
    while (!waiting_.empty()) {
      const Place place = std::move(waiting_.back());
      waiting_.pop_back();
      LOCKSTEP_RETURN_IF_ERROR(check_entries(place));
    }
    return Status::ok();
  }

 private:
  // `found` is the entry itself, never where a link leads.
  Status check(const struct stat& found, const Place& entry) {
    if (found.st_uid != ::geteuid()) return foreign(entry.path, found.st_uid);
    if (S_ISLNK(found.st_mode)) return check_link(entry);
    if (!entry.is_closed && (found.st_mode & kWritableByOthers) != 0)
      return writable(entry.path, run_dir_);
    if (S_ISDIR(found.st_mode)) enter(found, entry, entry.is_closed);
    return Status::ok();
  }

  Status check_link(const Place& link) {
    struct stat target {};
    if (link.is_cache || ::stat(link.path.c_str(), &target) != 0)
      return Status::ok();  // no program follows one that leads nowhere
    if (target.st_uid != ::geteuid()) return foreign(link.path, target.st_uid);
    if ((target.st_mode & kWritableByOthers) != 0) return writable(link.path, link.path);
    if (S_ISDIR(target.st_mode)) enter(target, link, /*is_closed=*/false);
    return Status::ok();
  }

  // Once, whatever links lead there.
  void enter(const struct stat& directory, const Place& entry, bool is_closed) {
    if (!entered_.emplace(directory.st_dev, directory.st_ino).second) return;
    waiting_.push_back({entry.path, is_closed || is_closed_to_others(directory), entry.is_cache});
  }

  Status check_entries(const Place& place) {
    DIR* handle = ::opendir(place.path.c_str());
    if (handle == nullptr) return Status::ok();  // its reader says why it cannot be read
    Status status;
    while (const dirent* entry = ::readdir(handle)) {
      const std::string name = entry->d_name;
      struct stat found {};
      if (name == "." || name == "..") continue;
      if (::fstatat(::dirfd(handle), entry->d_name, &found, AT_SYMLINK_NOFOLLOW) != 0) continue;
      const bool is_cache = place.is_cache || (place.path == run_dir_ && name == rundir::kCache);
      status = check(found, {place.path + "/" + name, place.is_closed, is_cache});
      if (!status.is_ok()) break;
    }
    ::closedir(handle);
    return status;
  }

  const std::string run_dir_;
  std::vector<Place> waiting_;
  std::set<std::pair<dev_t, ino_t>> entered_;
};

}  // namespace

Status check_trusted_run_dir(const std::string& run_dir) {
  const char* trusted = std::getenv(kTrustRunDirVariable);
  if (trusted != nullptr && std::strcmp(trusted, "1") == 0) return Status::ok();
  return Walk(run_dir).run();
}

Status make_run_dir(const std::string& run_dir) {
  std::error_code error;
  const std::filesystem::path path(run_dir);
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), error);
  if (!error && ::mkdir(run_dir.c_str(), 0700) != 0 && errno != EEXIST)
    error = std::error_code(errno, std::generic_category());
  if (!error) return Status::ok();
  const Code code = error == std::errc::no_space_on_device ? Code::kConfig : Code::kUsage;
  return {code, "cannot create " + run_dir + ": " + error.message() + "; choose another --run-dir"};
}

}  // namespace lockstep
