#include "comm/rundir/trust.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "comm/base/file.h"
#include "comm/base/text/shell_word.h"
#include "comm/rundir/layout.h"

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

// `what` is the entry itself, never where a link leads. `is_closed`: others cannot come to it.
Status check(const struct stat& what, const std::string& path, const std::string& run_dir,
             bool is_closed) {
  if (what.st_uid != ::geteuid()) return foreign(path, what.st_uid);
  if (S_ISLNK(what.st_mode)) {
    struct stat target {};
    if (::stat(path.c_str(), &target) != 0) return Status::ok();  // nobody follows it
    if (target.st_uid != ::geteuid()) return foreign(path, target.st_uid);
    return (target.st_mode & kWritableByOthers) != 0 ? writable(path, path) : Status::ok();
  }
  const bool is_writable = !is_closed && (what.st_mode & kWritableByOthers) != 0;
  return is_writable ? writable(path, run_dir) : Status::ok();
}

Status check_entries(const std::string& directory, const std::string& run_dir, bool is_closed) {
  DIR* handle = ::opendir(directory.c_str());
  if (handle == nullptr) return Status::ok();  // whoever needs it says why it cannot be read
  Status status;
  while (const dirent* entry = ::readdir(handle)) {
    const std::string name = entry->d_name;
    struct stat found {};
    if (name == "." || name == "..") continue;
    if (::fstatat(::dirfd(handle), entry->d_name, &found, AT_SYMLINK_NOFOLLOW) != 0) continue;
    status = check(found, directory + "/" + name, run_dir, is_closed);
    if (!status.is_ok()) break;
  }
  ::closedir(handle);
  return status;
}

}  // namespace

Status check_trusted_run_dir(const std::string& run_dir) {
  const char* trusted = std::getenv(kTrustRunDirVariable);
  if (trusted != nullptr && std::strcmp(trusted, "1") == 0) return Status::ok();
  struct stat found {};
  if (::lstat(run_dir.c_str(), &found) != 0) {
    if (errno == ENOENT) return Status::ok();
    return {Code::kConfig, "cannot look at " + run_dir + ": " + errno_text(errno)};
  }
  LOCKSTEP_RETURN_IF_ERROR(check(found, run_dir, run_dir, /*is_closed=*/false));
  // With umask 002 everything inside is the group's to write, and the directory itself keeps it
  // out.
  constexpr mode_t kEnteredByOthers = S_IXGRP | S_IXOTH;
  const bool is_closed = S_ISDIR(found.st_mode) && (found.st_mode & kEnteredByOthers) == 0;
  for (const std::string& directory : {run_dir, rundir::file_in(run_dir, rundir::kLogs),
                                       rundir::file_in(run_dir, rundir::kCheckpoints)})
    LOCKSTEP_RETURN_IF_ERROR(check_entries(directory, run_dir, is_closed));
  return Status::ok();
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
