#include "data/source/stores/mount_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "comm/base/file.h"
#include "comm/base/limits.h"
#include "data/base/hidden_names.h"

namespace lockstep::source {
namespace {

namespace fs = std::filesystem;

constexpr int kDepth = 32;  // of directories in each other; a link may lead in a circle

ObjectInfo info_of(std::string name, const struct stat& found) {
  const int64_t time_ns = int64_t{found.st_mtim.tv_sec} * 1'000'000'000 + found.st_mtim.tv_nsec;
  return {std::move(name), static_cast<uint64_t>(found.st_size),
          std::to_string(found.st_size) + "-" + std::to_string(time_ns)};
}

class MountStore final : public ObjectStore {
 public:
  explicit MountStore(std::string path) : path_(std::move(path)) {}

  const std::string& place() const override { return path_; }
  bool is_one_object() const override { return is_one_; }

  Result<std::vector<ObjectInfo>> list() override {
    struct stat found {};
    if (::stat(path_.c_str(), &found) != 0)
      return Status(Code::kNoInput, "cannot read " + path_ + ": " + errno_text(errno));
    std::vector<ObjectInfo> objects;
    if (S_ISREG(found.st_mode)) {
      is_one_ = true;
      objects.push_back(info_of(path_.substr(path_.rfind('/') + 1), found));
      return objects;
    }
    LOCKSTEP_RETURN_IF_ERROR(walk("", 0, objects));
    return objects;
  }

  Status read(const ObjectInfo& object, uint64_t offset, uint64_t bytes, uint8_t* out) override {
    const std::string path = is_one_ ? path_ : path_ + "/" + object.name;
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
      const Code code = errno == ENOENT ? Code::kNoInput : Code::kUnavailable;
      return {code, errno_text(errno)};
    }
    Status status = read_open(fd, object, offset, bytes, out);
    ::close(fd);
    return status;
  }

 private:
  static Status read_open(int fd, const ObjectInfo& object, uint64_t offset, uint64_t bytes,
                          uint8_t* out) {
    for (uint64_t done = 0; done < bytes;) {
      const ssize_t n = ::pread(fd, out + done, bytes - done, static_cast<off_t>(offset + done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return {Code::kUnavailable, errno_text(errno)};
      if (n == 0) return {Code::kBadData, "it was truncated after it was listed"};
      done += static_cast<uint64_t>(n);
    }
    struct stat now {};  // after the bytes, so that a write before the read shows
    if (::fstat(fd, &now) != 0) return {Code::kUnavailable, errno_text(errno)};
    if (info_of("", now).version != object.version)
      return {Code::kBadData, "it was written to, or replaced, after it was listed"};
    return Status::ok();
  }

  Status walk(const std::string& below, int depth, std::vector<ObjectInfo>& objects) const {
    if (depth > kDepth)
      return {Code::kBadData, path_ + "/" + below + " lies " + std::to_string(kDepth) +
                                  " directories deep; does a link lead back?"};
    std::error_code error;
    const std::string directory = below.empty() ? path_ : path_ + "/" + below;
    fs::directory_iterator it(directory, error);
    for (const fs::directory_iterator end; !error && it != end; it.increment(error)) {
      const std::string leaf = it->path().filename().string();
      if (data::is_hidden(leaf)) continue;
      const std::string name = below.empty() ? leaf : below + "/" + leaf;
      struct stat found {};
      if (::stat(it->path().c_str(), &found) != 0) continue;  // a link that leads nowhere
      if (S_ISDIR(found.st_mode)) LOCKSTEP_RETURN_IF_ERROR(walk(name, depth + 1, objects));
      if (S_ISREG(found.st_mode)) objects.push_back(info_of(name, found));
      if (objects.size() > limits::kSourceObjects)
        return {Code::kBadData,
                path_ + " holds more than " + std::to_string(limits::kSourceObjects) + " files"};
    }
    if (error) return {Code::kNoInput, "cannot read " + directory + ": " + error.message()};
    return Status::ok();
  }

  const std::string path_;
  bool is_one_ = false;
};

}  // namespace

std::unique_ptr<ObjectStore> make_mount_store(const std::string& path) {
  return std::make_unique<MountStore>(path);
}

}  // namespace lockstep::source
