#include "coordinator/run_dir/run_dir.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "comm/base/file.h"
#include "comm/base/limits.h"
#include "coordinator/claims/claim.h"

namespace lockstep::coordinator {
namespace {

std::string directory_of(const std::string& journal) {
  return std::filesystem::path(journal).parent_path().string();
}

template <typename Message>
Status read_message(const std::string& path, Message* message) {
  const auto bytes = read_file(path, limits::kJobFileBytes);
  if (!bytes.is_ok()) {
    return bytes.status().with_context(
        "`lockstep run` writes this file before it starts the "
        "coordinator");
  }
  if (message->ParseFromString(*bytes)) return Status::ok();
  return {Code::kUsage, path + " is damaged: start with `lockstep run` again"};
}

}  // namespace

Result<std::unique_ptr<RunLock>> RunLock::take(const std::string& journal) {
  const std::string path = lock_path(journal);
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return Status(Code::kNoInput, "cannot open " + path + ": " + errno_text(errno));
  std::unique_ptr<RunLock> lock(new RunLock(fd));
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    char pid[32] = {};
    const ssize_t got = ::pread(fd, pid, sizeof(pid) - 1, 0);
    return Status(Code::kUsage, "the run directory " + directory_of(journal) +
                                    " is in use by the coordinator with pid " +
                                    (got > 0 ? std::string(pid) : std::string("(unknown)")) +
                                    ": wait for it, stop it, or choose another --run-dir");
  }
  const std::string pid = std::to_string(::getpid());
  if (::ftruncate(fd, 0) != 0 ||
      ::pwrite(fd, pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    return Status(Code::kInternal, "cannot write " + path + ": " + errno_text(errno));
  }
  return lock;
}

Result<std::unique_ptr<RunLock>> RunLock::take_to_read(const std::string& journal) {
  const std::string path = lock_path(journal);
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Status(Code::kNoInput, "there is no run in " + directory_of(journal));
  std::unique_ptr<RunLock> lock(new RunLock(fd));
  if (::flock(fd, LOCK_SH | LOCK_NB) == 0) return lock;
  return Status(Code::kUsage, "the run in " + directory_of(journal) +
                                  " is still going on: wait for it or stop it, and then ask again; "
                                  "`lockstep status` tells how it is doing");
}

RunLock::~RunLock() {
  ::close(fd_);
}

Result<RunInputs> read_inputs(const std::string& run_dir) {
  RunInputs inputs;
  LOCKSTEP_RETURN_IF_ERROR(read_message(run_dir + "/job.pb", &inputs.job));
  LOCKSTEP_RETURN_IF_ERROR(read_message(run_dir + "/facts.pb", &inputs.facts));
  if (inputs.facts.train_samples() == 0 || !inputs.job.has_train()) {
    return Status(Code::kUsage, run_dir +
                                    "/job.pb or facts.pb is not complete: start with "
                                    "`lockstep run` again");
  }
  return inputs;
}

Result<std::string> absolute_path(const std::string& path) {
  char buffer[PATH_MAX];
  if (::realpath(path.c_str(), buffer) == nullptr) {
    return Status(Code::kNoInput, "there is no directory " + path + ": " + errno_text(errno));
  }
  return std::string(buffer);
}

Status write_endpoints(const std::string& run_dir, const Endpoints& endpoints) {
  nlohmann::json json;
  json["pid"] = ::getpid();
  json["run_id"] = endpoints.run_id;
  json["term"] = endpoints.term;
  json["control"] = endpoints.control;
  json["http"] = endpoints.http;
  json["started"] = endpoints.started_wall_ms;
  return replace_file(run_dir + "/coordinator.json", json.dump(2) + "\n");
}

}  // namespace lockstep::coordinator
