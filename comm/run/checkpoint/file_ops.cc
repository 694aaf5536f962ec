#include "comm/run/checkpoint/file_ops.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string_view>

#include "comm/base/descriptors.h"
#include "comm/base/file.h"

namespace lockstep {
namespace {

Status failed(const std::string& what) {
  return Status(Code::kInternal, what + ": " + errno_text(errno));
}

class PosixOutputFile final : public OutputFile {
 public:
  PosixOutputFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  ~PosixOutputFile() override {
    if (fd_ >= 0) ::close(fd_);
  }

  Status append(std::span<const std::byte> bytes) override {
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return write_all(fd_, text) ? Status::ok() : failed("cannot write " + path_);
  }

  // A failed fsync is never tried again: the kernel may have dropped the pages it could not write.
  Status finish() override {
    if (::fsync(fd_) != 0) return failed("cannot fsync " + path_);
    const int rc = ::close(fd_);
    fd_ = -1;
    return rc == 0 ? Status::ok() : failed("cannot close " + path_);
  }

 private:
  int fd_;
  std::string path_;
};

class PosixFileOps final : public FileOps {
 public:
  Status make_directory(const std::string& path) override {
    return ::mkdir(path.c_str(), 0755) == 0 ? Status::ok()
                                            : failed("cannot create directory " + path);
  }

  Result<std::unique_ptr<OutputFile>> create(const std::string& path) override {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0) return failed("cannot create " + path);
    return std::unique_ptr<OutputFile>(std::make_unique<PosixOutputFile>(fd, path));
  }

  Status rename(const std::string& from, const std::string& to) override {
    return ::rename(from.c_str(), to.c_str()) == 0 ? Status::ok()
                                                   : failed("cannot rename " + from + " to " + to);
  }

  Status sync_directory(const std::string& path) override { return lockstep::sync_directory(path); }

  Status remove_directory(const std::string& path) override {
    std::error_code error;  // other things may lie there, too; links are not followed
    std::filesystem::remove_all(path, error);
    return error
               ? Status(Code::kInternal, "cannot remove " + path + ": " + errno_text(error.value()))
               : Status::ok();
  }
};

}  // namespace

std::unique_ptr<FileOps> posix_file_ops() {
  return std::make_unique<PosixFileOps>();
}

}  // namespace lockstep
