#include "comm/inherited/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <iostream>

#include "comm/base/file.h"

namespace lockstep {

void secure_standard_streams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest free number is this one: those below it are open by now.
    if (::open("/dev/null", O_RDWR) != fd) ::_exit(exit_code(Status(Code::kConfig, "")));
  }
}

Status finish_stdout() {
  std::cout.flush();
  errno = 0;
  const bool is_flushed = std::fflush(stdout) == 0;
  const int error = errno;
  if (is_flushed && std::ferror(stdout) == 0 && std::cout.good()) return Status::ok();
  return Status(Code::kInternal, "the output is not whole, because stdout could not be written" +
                                     (error == 0 ? "" : ": " + errno_text(error)) +
                                     "; make room where it goes, then run the same command again");
}

}  // namespace lockstep
