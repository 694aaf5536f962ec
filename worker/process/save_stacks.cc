#include "worker/process/save_stacks.h"

#include <dirent.h>
#include <execinfo.h>
#include <fcntl.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <vector>

#include "comm/base/byte_units.h"
#include "comm/base/file.h"
#include "comm/run/directory/folder.h"

namespace lockstep {
namespace {

constexpr int kMostFrames = 64;
constexpr time_t kPatienceS = 1;
constexpr size_t kProcFileBytes = 4 * kKib;

int stack_signal() {
  return SIGRTMIN + 5;
}

// A signal handler has no other way to its data. Valid while save_stacks() runs.
std::atomic<int> output_fd{-1};
std::atomic<pid_t> asked_thread{0};  // a thread that answers after its turn writes nothing
sem_t answered;

void write_own_stack(int) {
  const int saved = errno;
  pid_t self = static_cast<pid_t>(::syscall(SYS_gettid));
  if (asked_thread.compare_exchange_strong(self, 0)) {
    void* frames[kMostFrames];
    ::backtrace_symbols_fd(frames, ::backtrace(frames, kMostFrames), output_fd.load());
    ::sem_post(&answered);
  }
  errno = saved;
}

std::vector<pid_t> all_threads() {
  std::vector<pid_t> threads;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir("/proc/self/task"), ::closedir);
  if (dir == nullptr) return threads;
  while (const dirent* entry = ::readdir(dir.get())) {
    const int thread = std::atoi(entry->d_name);
    if (thread > 0) threads.push_back(thread);
  }
  return threads;
}

std::string of_proc(pid_t thread, const char* file) {
  auto text = read_file("/proc/self/task/" + std::to_string(thread) + "/" + file, kProcFileBytes);
  if (!text.is_ok()) return "?\n";
  return *text;
}

void say(int fd, const std::string& text) {
  (void)!::write(fd, text.data(), text.size());
}

void ask(pid_t thread, int fd) {
  say(fd, "\nthread " + std::to_string(thread) + " " + of_proc(thread, "comm"));
  asked_thread = thread;
  if (::syscall(SYS_tgkill, ::getpid(), thread, stack_signal()) != 0) {
    say(fd, "  has ended meanwhile\n");
    return;
  }
  timespec until{};
  ::clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_sec += kPatienceS;
  while (::sem_clockwait(&answered, CLOCK_MONOTONIC, &until) != 0) {
    if (errno == EINTR) continue;
    pid_t expected = thread;
    if (!asked_thread.compare_exchange_strong(expected, 0)) continue;  // it has just begun
    say(fd, "  does not answer; the kernel says: " + of_proc(thread, "stat"));
    return;
  }
}

}  // namespace

Status save_stacks(const std::string& path) {
  rundir::make_folder_of(path);
  const int fd = create_own_file(path, 0644);
  if (fd < 0) return {Code::kInternal, "cannot write " + path + ": " + errno_text(errno)};
  void* frames[1];
  (void)::backtrace(frames, 1);  // loads what it needs now, not inside a handler
  ::sem_init(&answered, 0, 0);
  output_fd = fd;
  struct sigaction action {};
  action.sa_handler = write_own_stack;
  action.sa_flags = SA_RESTART;
  ::sigaction(stack_signal(), &action, nullptr);
  say(fd, "Stacks of process " + std::to_string(::getpid()) +
              ". For names: addr2line -Cfipe PROGRAM OFFSET, both from a line's "
              "\"PROGRAM(+OFFSET)\".\n");
  for (const pid_t thread : all_threads()) ask(thread, fd);
  ::close(fd);
  return Status::ok();
}

Status add_to_stacks(const std::string& path, const std::string& text) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return {Code::kInternal, "cannot write " + path + ": " + errno_text(errno)};
  say(fd, text);
  ::close(fd);
  return Status::ok();
}

}  // namespace lockstep
