#include "coordinator/journal/eval_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <utility>

#include "comm/base/descriptors.h"
#include "comm/base/file.h"

namespace lockstep::coordinator {
namespace {

std::string value_text(double value) {
  if (!std::isfinite(value)) return "null";
  char text[40];
  std::snprintf(text, sizeof(text), "%.9g", value);
  return text;
}

std::string share_text(uint64_t part, uint64_t whole) {
  return value_text(static_cast<double>(part) / static_cast<double>(whole));
}

Status eval_file_error(const std::string& doing, const std::string& path) {
  return {Code::kInternal, doing + " " + path + ": " + errno_text(errno)};
}

}  // namespace

std::string eval_line(const EvalEntry& eval, bool of_tokens) {
  std::string line = "{\"step\":" + std::to_string(eval.step) +
                     ",\"epoch\":" + std::to_string(eval.epoch) +
                     ",\"loss\":" + value_text(eval.loss) +
                     ",\"accuracy\":" + share_text(eval.correct, eval.samples) +
                     ",\"correct\":" + std::to_string(eval.correct) +
                     ",\"samples\":" + std::to_string(eval.samples);
  if (eval.top5) line += ",\"top5\":" + share_text(*eval.top5, eval.samples);
  if (of_tokens) line += ",\"perplexity\":" + value_text(std::exp(eval.loss));
  if (eval.lr) line += ",\"lr\":" + value_text(*eval.lr);
  return line + "}\n";
}

Result<std::unique_ptr<EvalFile>> EvalFile::open(const std::string& path, bool of_tokens) {
  std::unique_ptr<EvalFile> file(new EvalFile(path, of_tokens));
  LOCKSTEP_RETURN_IF_ERROR(file->begin_anew());
  return file;
}

EvalFile::~EvalFile() {
  if (fd_ >= 0) ::close(fd_);
}

Status EvalFile::begin_anew() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  lines_.clear();
  fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
  return fd_ >= 0 ? Status::ok() : eval_file_error("cannot open", path_);
}

bool EvalFile::is_whole() const {
  struct stat ours {};
  struct stat there {};
  return ::fstat(fd_, &ours) == 0 && ::stat(path_.c_str(), &there) == 0 &&
         ours.st_dev == there.st_dev && ours.st_ino == there.st_ino &&
         ours.st_size == (lines_.empty() ? 0 : lines_.back().end);
}

// A lineage loses its newest evaluations only, so the last line that is still true has true ones
// before it.
Status EvalFile::cut(const std::map<Step, EvalEntry>& evals) {
  const size_t before = lines_.size();
  while (!lines_.empty()) {
    const auto found = evals.find(lines_.back().step);
    if (found != evals.end() && found->second.generation == lines_.back().generation) break;
    lines_.pop_back();
  }
  if (lines_.size() == before) return Status::ok();
  const off_t end = lines_.empty() ? 0 : lines_.back().end;
  if (::ftruncate(fd_, end) != 0 || ::lseek(fd_, end, SEEK_SET) < 0)
    return eval_file_error("cannot cut", path_);
  return Status::ok();
}

Status EvalFile::follow(const std::map<Step, EvalEntry>& evals) {
  if (!is_whole()) LOCKSTEP_RETURN_IF_ERROR(begin_anew());
  LOCKSTEP_RETURN_IF_ERROR(cut(evals));
  std::string text;
  off_t end = lines_.empty() ? 0 : lines_.back().end;
  const auto first = lines_.empty() ? evals.begin() : evals.upper_bound(lines_.back().step);
  for (auto it = first; it != evals.end(); ++it) {
    const std::string line = eval_line(it->second, of_tokens_);
    text += line;
    end += static_cast<off_t>(line.size());
    lines_.push_back({it->first, it->second.generation, end});
  }
  if (text.empty()) return Status::ok();
  return write_all(fd_, text) ? Status::ok() : eval_file_error("cannot write", path_);
}

}  // namespace lockstep::coordinator
