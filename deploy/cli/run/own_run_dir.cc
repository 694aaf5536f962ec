#include "deploy/cli/run/own_run_dir.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <filesystem>
#include <utility>

#include "comm/base/byte_units.h"
#include "comm/base/descriptors.h"
#include "comm/base/file.h"
#include "comm/base/limits.h"
#include "comm/base/log.h"
#include "comm/base/text/shell_word.h"
#include "comm/base/text/utf8.h"
#include "comm/run/checkpoint/store.h"
#include "comm/run/directory/claim.h"
#include "comm/run/directory/layout.h"
#include "comm/run/directory/run_files.h"
#include "comm/run/directory/run_lock.h"
#include "comm/run/directory/trust.h"
#include "data/io/file_system.h"
#include "deploy/cli/base/text.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr int kMostOfOneName = 1'000;
constexpr uint64_t kNeededDiskBytes = 64 * kMib;

Status usage(const std::string& message) {
  return Status(Code::kUsage, message);
}

Status make_directory(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (!error) return Status::ok();
  const Code code = error == std::errc::no_space_on_device ? Code::kConfig : Code::kUsage;
  return Status(code, "cannot create " + path.string() + ": " + error.message() +
                          "; choose another --run-dir");
}

// The process that works in the directory, as far as its files tell: "coordinator pid 123".
std::string owner_of(const std::string& path) {
  if (const auto file = read_coordinator_file(path); file.is_ok())
    return "coordinator pid " + std::to_string(file->pid);
  const auto pid = read_file(rundir::file_in(path, rundir::kRunLock), 64);
  return pid.is_ok() && !pid->empty() ? "pid " + *pid : "pid unknown";
}

Status in_use(const std::string& path) {
  return usage("run directory " + path + " is in use by a live job (" + owner_of(path) +
               "); watch it with 'lockstep status --run-dir " + shell_word(path) +
               "', or choose another --run-dir");
}

// True if a process holds an flock on `file`; false if none does or there is no such file.
bool is_locked(const std::string& file) {
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool locked = ::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(fd);
  return locked;
}

std::string coordinator_lock(const std::string& run_dir) {
  return lock_path(journal_path(run_dir));
}

// Only names that a run makes: an attempt that failed, or was killed, before it began leaves such a
// directory.
bool is_ours_or_empty(const std::string& path) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path, error)) {
    const std::string name = entry.path().filename().string();
    if (!rundir::is_no_matter(name) && !rundir::is_before_the_run(name)) return false;
  }
  return !error;
}

Status check_content(const std::string& path, bool resume) {
  if (resume) {
    const bool has_job = fs::exists(rundir::file_in(path, rundir::kJob)) ||
                         fs::exists(rundir::file_in(path, rundir::kJobText));
    if (has_job || holds_a_run(path)) return Status::ok();
    return Status(Code::kNoInput,
                  "there is no run to resume in " + path + "; start one without --resume");
  }
  if (holds_a_run(path))
    return usage("run directory " + path +
                 " holds an earlier run; continue it with --resume, choose "
                 "another --run-dir, or delete the directory");
  if (!is_ours_or_empty(path))
    return usage(path + " is not empty and not a run directory; choose another --run-dir");
  return Status::ok();
}

Status check_disk(const std::string& path) {
  const std::string lack = lack_of_room(path, kNeededDiskBytes);
  if (lack.empty()) return Status::ok();
  return Status(Code::kConfig, lack + ", a run needs at least " + bytes_text(kNeededDiskBytes) +
                                   "; make room, or choose another --run-dir");
}

// The highest directory on the way to `path` that is not there; "" if all are.
std::string topmost_missing(const std::string& path) {
  std::string missing;
  std::error_code error;
  for (fs::path at = path; !at.empty() && !fs::exists(at, error); at = at.parent_path())
    missing = at.string();
  return missing;
}

}  // namespace

bool holds_a_run(const std::string& path) {
  std::error_code error;
  const std::string checkpoints = rundir::file_in(path, rundir::kCheckpoints);
  return fs::exists(rundir::file_in(path, rundir::kJournal), error) ||
         (fs::is_directory(checkpoints, error) && !fs::is_empty(checkpoints, error));
}

bool may_hold_a_run(const std::string& path) {
  std::error_code error;
  return !fs::exists(path, error) || holds_a_run(path) || is_ours_or_empty(path);
}

std::optional<Step> newest_checkpoint_step(const std::string& path) {
  const auto checkpoints = list_checkpoints(rundir::file_in(path, rundir::kCheckpoints));
  std::optional<Step> newest;
  if (!checkpoints.is_ok()) return newest;
  for (const ListedCheckpoint& each : *checkpoints)
    if (each.status.is_ok()) newest = std::max(newest.value_or(0), each.name.step);
  return newest;
}

bool has_checkpoint(const std::string& path) {
  return newest_checkpoint_step(path).has_value();
}

bool is_in_use(const std::string& path) {
  return is_locked(coordinator_lock(path)) || is_locked(rundir::file_in(path, rundir::kRunLock));
}

bool is_being_left(const std::string& path) {
  return is_locked(coordinator_lock(path)) && !is_locked(rundir::file_in(path, rundir::kRunLock));
}

std::string lack_of_room(const std::string& path, uint64_t needed_bytes) {
  const auto disk = data::disk_room(path);
  if (!disk || disk->free_bytes >= needed_bytes) return "";
  return "only " + bytes_text(disk->free_bytes) + " are free on the disk of " + path;
}

Result<RunDir> RunDir::open(const std::string& path, bool resume) {
  std::string absolute = fs::absolute(path).lexically_normal().string();
  if (absolute.size() > 1 && absolute.back() == '/') absolute.pop_back();
  // Every process of the run gets the path, in messages whose text is UTF-8.
  if (!is_printable_utf8(absolute))
    return usage("run directory " + json_escape(absolute) +
                 " has a name that is not printable UTF-8; choose another --run-dir");
  if (absolute.size() > limits::kRunDirBytes)
    return usage("run directory " + absolute + " has a name of " + std::to_string(absolute.size()) +
                 " bytes, at most " + std::to_string(limits::kRunDirBytes) +
                 " fit; choose a shorter --run-dir");
  std::error_code error;
  if (fs::exists(absolute, error) && !fs::is_directory(absolute, error))
    return usage(absolute + " is a file, not a run directory; choose another --run-dir");
  if (!fs::exists(absolute, error) && resume)
    return Status(Code::kNoInput, "there is no run to resume: " + absolute + " does not exist");
  LOCKSTEP_RETURN_IF_ERROR(check_trusted_run_dir(absolute));
  if (is_locked(coordinator_lock(absolute))) return in_use(absolute);
  if (fs::exists(absolute, error)) LOCKSTEP_RETURN_IF_ERROR(check_content(absolute, resume));
  return prepared_at(absolute, topmost_missing(absolute));
}

Result<RunDir> RunDir::prepared_at(const std::string& path, const std::string& created) {
  RunDir run_dir(path, created);
  const Status prepared = run_dir.prepare();
  if (prepared.is_ok()) return run_dir;
  run_dir.discard();
  return prepared;
}

Result<RunDir> RunDir::make_new(const std::string& wanted) {
  for (int number = 1; number <= kMostOfOneName; ++number) {
    const std::string path = number == 1 ? wanted : wanted + "-" + std::to_string(number);
    const std::string absolute = fs::absolute(path).lexically_normal().string();
    std::error_code error;
    if (absolute.size() > limits::kRunDirBytes || !is_printable_utf8(absolute))
      return open(path, /*resume=*/false);  // which refuses it
    const std::string missing = topmost_missing(absolute);
    LOCKSTEP_RETURN_IF_ERROR(make_directory(fs::path(absolute).parent_path()));
    // The run that creates it has it: another run may begin in the same second.
    if (fs::create_directory(absolute, error)) return prepared_at(absolute, missing);
    if (error) return open(path, /*resume=*/false);  // which says why
  }
  return usage("there are already " + std::to_string(kMostOfOneName) + " directories " + wanted +
               "-N; choose a --run-dir");
}

Status RunDir::prepare() {
  LOCKSTEP_RETURN_IF_ERROR(make_run_dir(path_));
  LOCKSTEP_RETURN_IF_ERROR(check_trusted_run_dir(path_));
  for (const char* name : {rundir::kLogs, rundir::kCheckpoints})
    LOCKSTEP_RETURN_IF_ERROR(make_directory(fs::path(path_) / name));
  const std::string lock_path = file(rundir::kRunLock);
  lock_fd_ = ::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (lock_fd_ < 0)
    return usage("cannot write in " + path_ + ": " + errno_text(errno) +
                 "; choose another --run-dir");
  if (::flock(lock_fd_, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return cannot_lock(lock_path);
    created_.clear();  // it is another run's by now
    return in_use(path_);
  }
  const std::string pid = std::to_string(::getpid());
  if (::ftruncate(lock_fd_, 0) != 0 || !write_all_at(lock_fd_, pid, 0))
    return Status(Code::kConfig, "cannot write " + lock_path + ": " + errno_text(errno));
  return check_disk(path_);
}

bool RunDir::discard() {
  if (created_.empty()) return false;
  std::error_code error;
  fs::remove_all(path_, error);
  fs::path parent = path_;
  while (parent != created_ && !error) {
    parent = parent.parent_path();
    if (!fs::is_empty(parent, error)) break;
    fs::remove(parent, error);
  }
  return !fs::exists(path_);
}

void RunDir::sweep() const {
  std::error_code error;
  // Temporary files of replace_file() in processes that were killed.
  for (const std::string& directory : {path_, file(rundir::kCache), file(rundir::kTrace)})
    for (const auto& entry : fs::directory_iterator(directory, error))
      if (entry.path().filename().string().find(rundir::kTemporaryMark) != std::string::npos)
        fs::remove(entry.path(), error);
  // The next checkpoint's writer removes what cannot be removed now.
  (void)remove_leftovers(*posix_file_ops(), file(rundir::kCheckpoints));
}

RunDir::RunDir(RunDir&& other) noexcept
    : path_(std::move(other.path_)),
      created_(std::move(other.created_)),
      lock_fd_(std::exchange(other.lock_fd_, -1)) {}

RunDir::~RunDir() {
  if (lock_fd_ >= 0) ::close(lock_fd_);
}

std::string default_run_dir(const std::string& job, int64_t wall_ms) {
  const std::time_t seconds = wall_ms / 1000;
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y%m%d-%H%M%S", &utc);
  return "runs/" + job + "-" + text;
}

}  // namespace lockstep
