#include "comm/environment/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

#include "comm/base/file.h"
#include "comm/base/text/printable.h"

namespace lockstep {
namespace {

std::string formatted(const char* format, va_list arguments) {
  char* text = nullptr;
  if (::vasprintf(&text, format, arguments) < 0) return "";
  std::string copy = text;
  std::free(text);
  return copy;
}

}  // namespace

void print_text(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::fputs(printable(formatted(format, arguments)).c_str(), stdout);
  va_end(arguments);
}

void print_error(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::string text = formatted(format, arguments);
  const bool has_end = text.ends_with('\n');
  if (has_end) text.pop_back();
  std::fputs((printable_message(text) + (has_end ? "\n" : "")).c_str(), stderr);
  va_end(arguments);
}

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
