#include "deploy/cli/base/scratch_directory.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "comm/base/file.h"

namespace lockstep {
namespace {

// The child lives until no process holds the other end of the pipe any more.
[[noreturn]] void remove_at_the_end(const std::string& path, int pipe_end) {
  ::setpgid(0, 0);  // a terminal's Ctrl-C is not for it, nor what ends all processes of a job
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, SIG_IGN);
  // The child holds no other descriptor, such as a pipe that another process waits for.
  if (pipe_end > STDERR_FILENO + 1) ::close_range(STDERR_FILENO + 1, pipe_end - 1, 0);
  ::close_range(pipe_end + 1, ~0U, 0);
  char nothing = 0;
  while (::read(pipe_end, &nothing, 1) != 0 && errno == EINTR) {
  }
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
  ::_exit(0);
}

}  // namespace

Result<std::unique_ptr<ScratchDirectory>> ScratchDirectory::create(const std::string& prefix) {
  std::string name = (std::filesystem::temp_directory_path() / (prefix + "XXXXXX")).string();
  if (::mkdtemp(name.data()) == nullptr)
    return Status(Code::kConfig,
                  "cannot create a temporary directory " + name + ": " + errno_text(errno) +
                      "; set TMPDIR to a directory with room that this user can write");
  int ends[2];
  const bool has_pipe = ::pipe2(ends, O_CLOEXEC) == 0;
  const pid_t pid = has_pipe ? ::fork() : -1;
  const int error = errno;
  if (pid == 0) {
    remove_at_the_end(name, ends[0]);
  }
  if (has_pipe) ::close(ends[0]);
  if (pid > 0)
    return std::unique_ptr<ScratchDirectory>(new ScratchDirectory(std::move(name), pid, ends[1]));
  if (has_pipe) ::close(ends[1]);
  ::rmdir(name.c_str());
  return Status(Code::kInternal, "cannot start a process: " + errno_text(error));
}

ScratchDirectory::ScratchDirectory(std::string path, pid_t remover, int alive)
    : path_(std::move(path)), remover_(remover), alive_(alive) {}

ScratchDirectory::~ScratchDirectory() {
  ::close(alive_);
  while (::waitpid(remover_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace lockstep
