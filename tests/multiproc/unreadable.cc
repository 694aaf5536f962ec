// Preloaded into the processes of a run: a worker's loader dies of the last page of the file that
// LOCKSTEP_TEST_UNREADABLE names, as of a sample that a decoder does not survive. All others, and
// the worker until its loader begins, can read it.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace {

constexpr size_t kPageBytes = 4096;

std::atomic<uintptr_t> last_page{0};

bool is_that_file(int fd) {
  const char* path = std::getenv("LOCKSTEP_TEST_UNREADABLE");
  struct stat wanted {};
  struct stat mapped {};
  return path != nullptr && fd >= 0 && ::stat(path, &wanted) == 0 && ::fstat(fd, &mapped) == 0 &&
         wanted.st_dev == mapped.st_dev && wanted.st_ino == mapped.st_ino;
}

}  // namespace

extern "C" void* mmap(void* at, size_t bytes, int protection, int flags, int fd, off_t offset) {
  const long got = ::syscall(SYS_mmap, at, bytes, protection, flags, fd, offset);
  if (got != -1 && is_that_file(fd))
    last_page = static_cast<uintptr_t>(got) + (bytes - 1) / kPageBytes * kPageBytes;
  return reinterpret_cast<void*>(got);
}

extern "C" int pthread_setname_np(pthread_t thread, const char* name) {
  using Function = int (*)(pthread_t, const char*);
  static const auto real = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "pthread_setname_np"));
  if (last_page != 0 && std::strcmp(name, "loader") == 0)
    (void)::mprotect(reinterpret_cast<void*>(last_page.load()), kPageBytes, PROT_NONE);
  return real(thread, name);
}
