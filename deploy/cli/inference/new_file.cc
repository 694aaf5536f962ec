#include "deploy/cli/inference/new_file.h"

#include <fcntl.h>
#include <stdio.h>

#include <cerrno>

#include "comm/base/file.h"
#include "comm/base/text/shell_word.h"

namespace lockstep {

Status publish_new_file(const std::string& from, const std::string& to) {
  int failed = ::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE);
  // Some network file systems cannot rename so.
  if (failed != 0 && (errno == EINVAL || errno == ENOSYS))
    failed = ::rename(from.c_str(), to.c_str());
  if (failed == 0) return Status::ok();
  if (errno == EEXIST)
    return {Code::kUsage, shell_word(to) + " is there already; name another file"};
  return {Code::kInternal, "cannot make " + shell_word(to) + ": " + errno_text(errno) +
                               "; name a file in another directory"};
}

}  // namespace lockstep
