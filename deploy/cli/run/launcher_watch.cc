#include "deploy/cli/run/launcher_watch.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "comm/base/file.h"
#include "comm/base/limits.h"
#include "comm/environment/blocked_signals.h"

namespace lockstep {
namespace {

// As the kernel calls them, in at most 15 characters.
constexpr std::string_view kLauncherNames[] = {"mpirun",        "mpiexec",        "orterun",
                                               "orted",         "prterun",        "prted",
                                               "mpiexec.hydra", "hydra_pmi_proxy"};

struct Ancestor {
  std::string name;
  pid_t parent = 0;
};

// "PID (NAME) S PARENT ...", where the name may hold anything.
Ancestor ancestor_at(pid_t pid) {
  const auto stat = read_file("/proc/" + std::to_string(pid) + "/stat", limits::kSystemFileBytes);
  if (!stat.is_ok()) return {};
  const size_t begin = stat->find('(');
  const size_t end = stat->rfind(')');
  constexpr size_t kToParent = 4;  // ") S "
  if (begin == std::string::npos || end == std::string::npos || end + kToParent >= stat->size())
    return {};
  Ancestor found{stat->substr(begin + 1, end - begin - 1), 0};
  std::from_chars(stat->data() + end + kToParent, stat->data() + stat->size(), found.parent);
  return found;
}

}  // namespace

pid_t launching_process() {
  for (pid_t pid = ::getppid(); pid > 1;) {
    const Ancestor at = ancestor_at(pid);
    if (std::ranges::find(kLauncherNames, at.name) != std::end(kLauncherNames)) return pid;
    pid = at.parent;
  }
  return 0;
}

struct LauncherWatch::Impl {
  int launcher = -1;
  int end = -1;
  std::function<void()> tell;
  std::thread thread;

  void watch() {
    pollfd looks[] = {{launcher, POLLIN, 0}, {end, POLLIN, 0}};
    while (::poll(looks, std::size(looks), -1) < 0 && errno == EINTR) {
    }
    if ((looks[0].revents & POLLIN) == 0 || looks[1].revents != 0) return;
    tell();
    ::kill(::getpid(), SIGTERM);
  }
};

LauncherWatch::LauncherWatch(pid_t launcher, std::function<void()> tell) {
  const int fd = launcher == 0 ? -1 : static_cast<int>(::syscall(SYS_pidfd_open, launcher, 0));
  if (fd < 0) return;
  impl_.reset(new Impl{fd, ::eventfd(0, EFD_CLOEXEC), std::move(tell), {}});
  const BlockedSignals inherited;
  impl_->thread = std::thread([this] { impl_->watch(); });
}

LauncherWatch::~LauncherWatch() {
  if (impl_ == nullptr) return;
  (void)::eventfd_write(impl_->end, 1);
  impl_->thread.join();
  ::close(impl_->end);
  ::close(impl_->launcher);
}

}  // namespace lockstep
