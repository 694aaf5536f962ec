#include "worker/process/nccl_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string_view>

#include "comm/base/descriptors.h"
#include "comm/base/limits.h"
#include "comm/base/text/printable.h"
#include "comm/run/directory/folder.h"
#include "comm/run/directory/layout.h"

namespace lockstep {
namespace {

// A second hard link means that a person keeps the file, and NCCL would truncate it.
bool is_plain(const struct stat& there) {
  return S_ISREG(there.st_mode) && there.st_nlink == 1;
}

std::string shown(std::string_view line) {
  std::string text = printable_line(line.substr(0, limits::kHangLineBytes));
  if (line.size() > limits::kHangLineBytes) text += " ...";
  return text;
}

}  // namespace

std::string make_nccl_log(const std::string& run_dir, const std::string& process) {
  const std::string path = rundir::log_in(run_dir, process + ".nccl.txt");
  rundir::make_folder_of(path);
  struct stat there {};
  if (::lstat(path.c_str(), &there) == 0) {
    if (!is_plain(there)) return "";
    if (there.st_size > 0 && ::rename(path.c_str(), (path + ".1").c_str()) != 0) return "";
  }
  // NCCL follows links, and writes to stdout if it cannot open the file.
  const Descriptor made(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644));
  return made.is_open() ? path : "";
}

std::string nccl_debug_file(const std::string& path) {
  std::string value;
  for (const char c : path) value.append(c == '%' ? 2 : 1, c);
  return value;
}

std::vector<std::string> read_nccl_log(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat there {};
  if (!file.is_open() || ::fstat(file.get(), &there) != 0 || !is_plain(there)) return {};
  const auto size = static_cast<uint64_t>(there.st_size);
  const uint64_t begin = size - std::min<uint64_t>(size, limits::kNcclLogTailBytes);
  std::string bytes(size - begin, '\0');
  const ssize_t got = read_at(file.get(), begin, bytes.size(), bytes.data());
  bytes.resize(got < 0 ? 0 : static_cast<size_t>(got));
  // After a hole a line begins.
  const bool begins_within_line = begin > 0 && !bytes.empty() && bytes.front() != '\0';
  std::erase(bytes, '\0');
  std::string_view text = bytes;
  if (begins_within_line) text.remove_prefix(std::min(text.find('\n') + 1, text.size()));
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (end > 0) lines.push_back(shown(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (lines.size() > limits::kHangLines)
    lines.erase(lines.begin(), lines.end() - limits::kHangLines);
  return lines;
}

}  // namespace lockstep
