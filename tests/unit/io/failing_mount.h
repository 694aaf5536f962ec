// A file on a file system of our own, whose reads fail as often as is wanted: the kernel asks a
// process of ours for its bytes (FUSE, linux/fuse.h), without a library. The answering process is
// another one than the test: a thread that waits for a mapped page holds up what its own process
// would answer with.
//
// Thread-safety: fail_next() and reads() from any thread.
#pragma once

#include <fcntl.h>
#include <linux/fuse.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::data {

class FailingMount {
 public:
  static constexpr char kName[] = "data";

  // On an empty directory. `is_cached`: reads go through the page cache, so that it can be mapped.
  FailingMount(std::string directory, std::string content, bool is_cached)
      : directory_(std::move(directory)), content_(std::move(content)), is_cached_(is_cached) {
    fd_ = ::open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (fd_ < 0) return;
    const std::string options =
        "fd=" + std::to_string(fd_) + ",rootmode=40000,user_id=0,group_id=0";
    is_mounted_ = ::mount("lockstep-test", directory_.c_str(), "fuse", 0, options.c_str()) == 0;
    if (is_mounted_) start();
    ::close(fd_);  // the child has its own: when it dies, no read waits any more
  }
  ~FailingMount() {
    if (!is_mounted_) return;
    ::umount2(directory_.c_str(), MNT_DETACH);
    if (child_ > 0) {
      ::kill(child_, SIGKILL);
      ::waitpid(child_, nullptr, 0);
    }
    ::munmap(shared_, sizeof *shared_);
  }
  FailingMount(const FailingMount&) = delete;
  FailingMount& operator=(const FailingMount&) = delete;

  // False where this process may not mount, or there is no FUSE.
  bool is_mounted() const { return is_mounted_; }
  void fail_next(uint32_t reads) { shared_->failing = reads; }
  uint32_t reads() const { return shared_->reads; }

 private:
  static constexpr uint64_t kFile = 2;  // its number; 1 is the directory

  struct Shared {  // with the child
    std::atomic<uint32_t> failing{0};
    std::atomic<uint32_t> reads{0};
  };

  void start() {
    void* memory =
        ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    shared_ = new (memory) Shared;
    child_ = ::fork();
    if (child_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    serve();
    ::_exit(0);
  }

  void serve() {
    std::vector<char> in(1 << 20);
    while (true) {
      const ssize_t n = ::read(fd_, in.data(), in.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return;  // ENODEV: unmounted
      fuse_in_header header{};
      std::memcpy(&header, in.data(), sizeof header);
      answer(header, in.data() + sizeof header);
    }
  }

  void answer(const fuse_in_header& asked, const char* body) {
    switch (asked.opcode) {
      case FUSE_INIT: {
        fuse_init_out out{};
        out.major = FUSE_KERNEL_VERSION;
        out.minor = FUSE_KERNEL_MINOR_VERSION;
        out.max_readahead = 0;
        out.max_write = 4'096;
        return reply(asked, out);
      }
      case FUSE_LOOKUP: {
        if (std::string_view(body) != kName) return fail(asked, ENOENT);
        fuse_entry_out out{};
        out.nodeid = kFile;
        out.attr_valid = out.entry_valid = 60;
        out.attr = attributes(kFile);
        return reply(asked, out);
      }
      case FUSE_GETATTR: {
        fuse_attr_out out{};
        out.attr_valid = 60;
        out.attr = attributes(asked.nodeid);
        return reply(asked, out);
      }
      case FUSE_OPEN: {
        fuse_open_out out{};
        if (!is_cached_) out.open_flags = FOPEN_DIRECT_IO;
        return reply(asked, out);
      }
      case FUSE_READ: {
        fuse_read_in wanted{};
        std::memcpy(&wanted, body, sizeof wanted);
        ++shared_->reads;
        if (shared_->failing > 0) return --shared_->failing, fail(asked, EIO);
        const uint64_t at = std::min<uint64_t>(wanted.offset, content_.size());
        return send(asked, 0, std::string_view(content_).substr(at, wanted.size));
      }
      case FUSE_STATFS:
        return reply(asked, fuse_statfs_out{});
      case FUSE_RELEASE:
      case FUSE_FLUSH:
        return send(asked, 0, {});
      case FUSE_FORGET:
      case FUSE_BATCH_FORGET:
      case FUSE_INTERRUPT:
        return;  // no answer is expected
      default:
        return fail(asked, ENOSYS);
    }
  }

  fuse_attr attributes(uint64_t node) const {
    fuse_attr out{};
    out.ino = node;
    out.mode = node == kFile ? S_IFREG | 0444 : S_IFDIR | 0555;
    out.size = node == kFile ? content_.size() : 0;
    out.nlink = 1;
    out.blksize = 4'096;
    return out;
  }

  template <typename T>
  void reply(const fuse_in_header& asked, const T& out) {
    send(asked, 0, {reinterpret_cast<const char*>(&out), sizeof out});
  }
  void fail(const fuse_in_header& asked, int error) { send(asked, -error, {}); }
  void send(const fuse_in_header& asked, int error, std::string_view body) {
    fuse_out_header header{};
    header.unique = asked.unique;
    header.error = error;
    header.len = static_cast<uint32_t>(sizeof header + body.size());
    std::string out(reinterpret_cast<const char*>(&header), sizeof header);
    out += body;
    (void)!::write(fd_, out.data(), out.size());
  }

  const std::string directory_;
  const std::string content_;
  const bool is_cached_;
  int fd_ = -1;
  bool is_mounted_ = false;
  Shared* shared_ = nullptr;
  pid_t child_ = -1;
};

}  // namespace lockstep::data
