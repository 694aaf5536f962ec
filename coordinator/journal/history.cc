#include "coordinator/journal/history.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "comm/base/check.h"
#include "comm/base/descriptors.h"
#include "coordinator/journal/derived_file.h"

namespace lockstep::coordinator {
namespace {

int open_file(const std::string& path) {
  return ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
}

struct Kept {
  Step lines = 0;
  off_t bytes = 0;
};

// How many whole lines are there that begin with their own number, at most `limit`.
Result<Kept> count_lines(int fd, const std::string& path, Step limit) {
  Kept kept;
  std::string text;
  size_t begin = 0;
  char buffer[1 << 16];
  while (kept.lines < limit) {
    const size_t end = text.find('\n', begin);
    if (end == std::string::npos) {
      text.erase(0, begin);
      begin = 0;
      const ssize_t got = ::read(fd, buffer, sizeof(buffer));
      if (got < 0) return derived_file_error("cannot read", path);
      if (got == 0) break;
      text.append(buffer, static_cast<size_t>(got));
      continue;
    }
    const std::string prefix = "{\"step\":" + std::to_string(kept.lines + 1) + ",";
    if (text.compare(begin, prefix.size(), prefix) != 0) break;
    ++kept.lines;
    kept.bytes += static_cast<off_t>(end + 1 - begin);
    begin = end + 1;
  }
  return kept;
}

}  // namespace

std::string history_line(const StepEntry& step) {
  return "{\"step\":" + std::to_string(step.step + 1) + ",\"epoch\":" + std::to_string(step.epoch) +
         ",\"loss\":" + number_text(step.loss) + ",\"lr\":" + number_text(step.lr) +
         ",\"samples\":" + std::to_string(step.samples) +
         (step.skipped ? ",\"skipped\":true" : "") + metrics_text(step.metrics) + "}\n";
}

Result<std::unique_ptr<History>> History::open(const std::string& path, Step keep_steps) {
  const int fd = open_file(path);
  if (fd < 0) return derived_file_error("cannot open", path);
  std::unique_ptr<History> history(new History(fd, path, 0));
  LOCKSTEP_RETURN_IF_ERROR(history->cut(keep_steps));
  return history;
}

Status History::cut(Step keep_steps) {
  LOCKSTEP_CHECK(pending_.empty(), "what is pending is flushed first");
  if (::lseek(fd_, 0, SEEK_SET) < 0) return derived_file_error("cannot seek in", path_);
  LOCKSTEP_ASSIGN_OR_RETURN(const Kept kept, count_lines(fd_, path_, keep_steps));
  if (::ftruncate(fd_, kept.bytes) != 0) return derived_file_error("cannot cut", path_);
  if (::lseek(fd_, kept.bytes, SEEK_SET) < 0) return derived_file_error("cannot seek in", path_);
  lines_ = kept.lines;
  bytes_ = kept.bytes;
  return Status::ok();
}

History::~History() {
  ::close(fd_);
}

void History::append(const StepEntry& step) {
  LOCKSTEP_CHECK(step.step == lines_, "H1: line n has step n");
  pending_ += history_line(step);
  ++lines_;
  ++pending_lines_;
}

bool History::is_whole() const {
  return is_still_there(fd_, path_, bytes_);
}

Status History::restore(const Steps& steps) {
  const std::string pending = std::exchange(pending_, {});
  const Step pending_lines = std::exchange(pending_lines_, 0);
  const Step flushed = lines_ - pending_lines;
  const int fd = open_file(path_);
  if (fd < 0) return derived_file_error("cannot open", path_);
  ::close(std::exchange(fd_, fd));
  LOCKSTEP_RETURN_IF_ERROR(cut(flushed));
  LOCKSTEP_RETURN_IF_ERROR(fill(flushed, steps));
  pending_ += pending;
  lines_ += pending_lines;
  pending_lines_ += pending_lines;
  return flush();
}

Result<bool> History::correct(Step end, const Steps& steps) {
  LOCKSTEP_CHECK(pending_.empty(), "what is pending is flushed first");
  std::ifstream file(path_);
  Step same = 0;
  LOCKSTEP_RETURN_IF_ERROR(steps(0, std::min(end, lines_), [&](const StepEntry& step) {
    std::string line;
    if (step.step == same && std::getline(file, line) && line + "\n" == history_line(step)) ++same;
  }));
  if (same == end && lines_ == end) return false;
  LOCKSTEP_RETURN_IF_ERROR(cut(same));
  LOCKSTEP_RETURN_IF_ERROR(fill(end, steps));
  return true;
}

Status History::fill(Step end, const Steps& steps) {
  LOCKSTEP_RETURN_IF_ERROR(steps(lines_, end, [this](const StepEntry& step) {
    if (step.step == lines_) append(step);
  }));
  return flush();
}

Status History::flush() {
  if (!write_all(fd_, pending_)) return derived_file_error("cannot write", path_);
  bytes_ += static_cast<off_t>(pending_.size());
  pending_.clear();
  pending_lines_ = 0;
  return Status::ok();
}

}  // namespace lockstep::coordinator
