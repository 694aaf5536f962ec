#include "coordinator/journal/history.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "comm/base/byte_units.h"
#include "comm/base/check.h"
#include "comm/base/descriptors.h"
#include "comm/base/hash.h"
#include "comm/base/text/shallow_json.h"
#include "coordinator/journal/derived_file.h"

namespace lockstep::coordinator {
namespace {

int open_file(const std::string& path) {
  return ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
}

constexpr size_t kFlushBytes = kMib;  // no more is held in memory while many lines are written

std::string begin_of(Step line) {
  return "{\"step\":" + std::to_string(line) + ",";
}

using Json = nlohmann::ordered_json;

constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

double real_of(const Json& line, const char* key) {
  const auto it = line.find(key);
  return it != line.end() && it->is_number() ? it->get<double>() : kNotANumber;
}

}  // namespace

std::string history_line(const StepEntry& step) {
  return "{\"step\":" + std::to_string(step.step + 1) + ",\"epoch\":" + std::to_string(step.epoch) +
         ",\"loss\":" + number_text(step.loss) + ",\"lr\":" + number_text(step.lr) +
         ",\"samples\":" + std::to_string(step.samples) +
         (step.skipped ? ",\"skipped\":true" : "") + metrics_text(step.metrics) + "}\n";
}

Result<std::unique_ptr<History>> History::open(const std::string& path, Step keep_steps,
                                               const std::vector<StepPiece>& pieces) {
  const int fd = open_file(path);
  if (fd < 0) return derived_file_error("cannot open", path);
  std::unique_ptr<History> history(new History(fd, path));
  LOCKSTEP_ASSIGN_OR_RETURN(history->thin_, ThinHistory::open(path));
  LOCKSTEP_RETURN_IF_ERROR(history->cut(keep_steps, pieces));
  return history;
}

// The lines of pieces, if they end where they should and the last one has its number. None
// otherwise.
History::Lines History::lines_of(const std::vector<StepPiece>& pieces, Step limit) const {
  Lines lines;
  for (const StepPiece& piece : pieces) {
    if (piece.last > limit) break;
    lines = {piece.last, lines.bytes + static_cast<off_t>(piece.text_bytes)};
  }
  constexpr off_t kLongestLine = 64 * 1024;
  const off_t from = std::max<off_t>(0, lines.bytes - kLongestLine);
  std::string end(static_cast<size_t>(lines.bytes - from), '\0');
  if (read_at(fd_, static_cast<uint64_t>(from), end.size(), end.data()) !=
      static_cast<ssize_t>(end.size()))
    return {};
  if (end.empty() || end.back() != '\n') return {};
  const size_t before = end.size() < 2 ? std::string::npos : end.rfind('\n', end.size() - 2);
  const size_t begin = before == std::string::npos ? 0 : before + 1;
  return end.compare(begin, begin_of(lines.count).size(), begin_of(lines.count)) == 0 ? lines
                                                                                      : Lines{};
}

// How many of the lines of pieces have the hash of their piece.
Result<History::Lines> History::right_lines(const std::vector<StepPiece>& pieces,
                                            Step limit) const {
  Lines right;
  std::string text;
  for (const StepPiece& piece : pieces) {
    if (piece.last > limit) break;
    text.resize(piece.text_bytes);
    const ssize_t got = read_at(fd_, static_cast<uint64_t>(right.bytes), text.size(), text.data());
    if (got < 0) return derived_file_error("cannot read", path_);
    if (static_cast<size_t>(got) != text.size() || xxh3_64(text) != piece.text_hash) break;
    right = {piece.last, right.bytes + got};
  }
  return right;
}

Status History::cut(Step keep_steps, const std::vector<StepPiece>& pieces) {
  LOCKSTEP_CHECK(pending_.empty(), "what is pending is flushed first");
  Lines kept = lines_of(pieces, keep_steps);
  std::string text;
  size_t begin = 0;
  char buffer[1 << 16];
  if (::lseek(fd_, kept.bytes, SEEK_SET) < 0) return derived_file_error("cannot seek in", path_);
  while (kept.count < keep_steps) {
    const size_t end = text.find('\n', begin);
    if (end == std::string::npos) {
      text.erase(0, begin);
      begin = 0;
      const ssize_t got = ::read(fd_, buffer, sizeof(buffer));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return derived_file_error("cannot read", path_);
      if (got == 0) break;
      text.append(buffer, static_cast<size_t>(got));
      continue;
    }
    const std::string prefix = begin_of(kept.count + 1);
    if (text.compare(begin, prefix.size(), prefix) != 0) break;
    ++kept.count;
    kept.bytes += static_cast<off_t>(end + 1 - begin);
    begin = end + 1;
  }
  if (::ftruncate(fd_, kept.bytes) != 0) return derived_file_error("cannot cut", path_);
  if (::lseek(fd_, kept.bytes, SEEK_SET) < 0) return derived_file_error("cannot seek in", path_);
  lines_ = kept.count;
  bytes_ = kept.bytes;
  return thin_->follow(lines_, bytes_);
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

Result<bool> History::correct(Step end, const Steps& steps, const std::vector<StepPiece>& pieces,
                              bool reads_all) {
  LOCKSTEP_CHECK(pending_.empty(), "what is pending is flushed first");
  const Step limit = std::min(end, lines_);
  Lines right = lines_of(pieces, limit);
  if (reads_all) {
    LOCKSTEP_ASSIGN_OR_RETURN(right, right_lines(pieces, limit));
  }
  std::ifstream file(path_);
  file.seekg(right.bytes);
  Step same = right.count;
  LOCKSTEP_RETURN_IF_ERROR(steps(same, limit, [&](const StepEntry& step) {
    std::string line;
    if (step.step == same && std::getline(file, line) && line + "\n" == history_line(step)) ++same;
  }));
  if (same == end && lines_ == end) return false;
  LOCKSTEP_RETURN_IF_ERROR(cut(same));
  LOCKSTEP_RETURN_IF_ERROR(fill(end, steps));
  return true;
}

Status History::fill(Step end, const Steps& steps) {
  Status flushed;
  LOCKSTEP_RETURN_IF_ERROR(steps(lines_, end, [&](const StepEntry& step) {
    if (step.step == lines_ && flushed.is_ok()) append(step);
    if (pending_.size() >= kFlushBytes) flushed = flush();
  }));
  LOCKSTEP_RETURN_IF_ERROR(flushed);
  return flush();
}

Status History::flush() {
  if (!write_all(fd_, pending_)) return derived_file_error("cannot write", path_);
  bytes_ += static_cast<off_t>(pending_.size());
  const std::string written = std::exchange(pending_, {});
  pending_lines_ = 0;
  return thin_->add(written);
}

StepEntry unknown_step(Step step) {
  StepEntry entry;
  entry.step = step;
  entry.loss = kNotANumber;
  entry.lr = kNotANumber;
  return entry;
}

std::vector<StepEntry> read_history(const std::string& path, Step limit) {
  std::vector<StepEntry> steps;
  std::ifstream file(path);
  for (std::string text; steps.size() < limit && std::getline(file, text);) {
    const Json line = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    const bool is_next = line.is_object() && count_in(line, "step") == steps.size() + 1;
    if (!is_next || file.eof()) break;  // H2: a line ends with a newline
    StepEntry& entry = steps.emplace_back(unknown_step(steps.size()));
    entry.epoch = static_cast<Epoch>(count_in(line, "epoch"));
    entry.samples = count_in(line, "samples");
    entry.loss = real_of(line, "loss");
    entry.lr = real_of(line, "lr");
    const auto skipped = line.find("skipped");
    entry.skipped = skipped != line.end() && skipped->is_boolean() && skipped->get<bool>();
    if (const auto metrics = line.find("metrics"); metrics != line.end() && metrics->is_object())
      for (const auto& [name, value] : metrics->items())
        entry.metrics.push_back({name, real_of(*metrics, name.c_str())});
    // The line is not as it was written, so nothing in it is believed.
    if (history_line(entry) != text + "\n") entry = unknown_step(entry.step);
  }
  return steps;
}

}  // namespace lockstep::coordinator
