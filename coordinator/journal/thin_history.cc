#include "coordinator/journal/thin_history.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "comm/base/byte_units.h"
#include "comm/base/crc32c.h"
#include "comm/base/descriptors.h"
#include "comm/run/directory/layout.h"
#include "coordinator/journal/derived_file.h"

namespace lockstep::coordinator {
namespace {

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();
constexpr std::string_view kCrcKey = ",\"crc\":";
constexpr size_t kReadBytes = kMib;

// The text after `key` in a line of ours, up to the next comma or brace.
std::string_view value_after(std::string_view line, std::string_view key) {
  const size_t at = line.find(key);
  if (at == std::string_view::npos) return {};
  line.remove_prefix(at + key.size());
  return line.substr(0, line.find_first_of(",}"));
}

double real_after(std::string_view line, std::string_view key) {
  const std::string_view text = value_after(line, key);
  double value = kNoNumber;
  (void)std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

uint64_t whole_after(std::string_view line, std::string_view key) {
  const std::string_view text = value_after(line, key);
  uint64_t value = 0;
  (void)std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// Calls `take` with every whole line of [begin, end) of a file, with its newline. It may return
// false to stop.
template <typename Take>
Status for_each_line(int fd, const std::string& path, off_t begin, off_t end, const Take& take) {
  std::string text;
  std::string buffer(kReadBytes, '\0');
  for (off_t at = begin; at < end;) {
    const size_t wanted = std::min(kReadBytes, static_cast<size_t>(end - at));
    const ssize_t got = read_at(fd, static_cast<uint64_t>(at), wanted, buffer.data());
    if (got < 0) return derived_file_error("cannot read", path);
    if (got == 0) return Status::ok();
    at += got;
    text.append(buffer, 0, static_cast<size_t>(got));
    size_t from = 0;
    for (size_t stop; (stop = text.find('\n', from)) != std::string::npos; from = stop + 1)
      if (!take(std::string_view(text).substr(from, stop + 1 - from))) return Status::ok();
    text.erase(0, from);
  }
  return Status::ok();
}

uint32_t crc_after(uint32_t before, std::string_view text) {
  return extend_crc32c(crc32c(std::to_string(before)), text);
}

}  // namespace

std::string thin_path(const std::string& history) {
  return rundir::file_in(std::filesystem::path(history).parent_path().string(),
                         rundir::kThinHistory);
}

std::optional<ThinMark> read_thin_mark(std::string_view line, const ThinMark& before) {
  const size_t crc = line.rfind(kCrcKey);
  if (crc == std::string_view::npos || !line.ends_with("}\n")) return std::nullopt;
  ThinMark mark{whole_after(line, "\"step\":"), static_cast<off_t>(whole_after(line, "\"bytes\":")),
                crc_after(before.crc, line.substr(0, crc)),
                before.end + static_cast<off_t>(line.size())};
  const bool follows = mark.lines == before.lines + kThinSteps && mark.bytes > before.bytes &&
                       whole_after(line, kCrcKey) == mark.crc;
  return follows ? std::optional(mark) : std::nullopt;
}

Result<std::unique_ptr<ThinHistory>> ThinHistory::open(const std::string& history) {
  std::unique_ptr<ThinHistory> thin(new ThinHistory(history, thin_path(history)));
  LOCKSTEP_RETURN_IF_ERROR(thin->open_file());
  return thin;
}

Status ThinHistory::open_file() {
  fd_ = Descriptor(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
  return fd_.is_open() ? Status::ok() : derived_file_error("cannot open", path_);
}

// Cuts what does not lie in the first `lines` lines of the history, which have `bytes` bytes.
Status ThinHistory::keep(Step lines, off_t bytes) {
  LOCKSTEP_RETURN_IF_ERROR(open_file());
  mark_ = {};
  sums_ = {};
  pending_.clear();
  const off_t size = ::lseek(fd_.get(), 0, SEEK_END);
  LOCKSTEP_RETURN_IF_ERROR(for_each_line(fd_.get(), path_, 0, size, [&](std::string_view line) {
    const auto next = read_thin_mark(line, mark_);
    if (!next || next->lines > lines || next->bytes > bytes) return false;
    mark_ = *next;
    return true;
  }));
  if (::ftruncate(fd_.get(), mark_.end) != 0 || ::lseek(fd_.get(), mark_.end, SEEK_SET) < 0)
    return derived_file_error("cannot cut", path_);
  return Status::ok();
}

Status ThinHistory::follow(Step lines, off_t bytes) {
  LOCKSTEP_RETURN_IF_ERROR(keep(lines, bytes));
  const Descriptor history(::open(history_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!history.is_open()) return derived_file_error("cannot open", history_);
  // A line of ours that ends in the middle of one of the history's is of another history.
  const std::string due = "{\"step\":" + std::to_string(mark_.lines + 1) + ",";
  std::string found(due.size(), '\0');
  const bool is_there = read_at(history.get(), static_cast<uint64_t>(mark_.bytes), found.size(),
                                found.data()) == static_cast<ssize_t>(found.size()) &&
                        found == due;
  if (!is_there && mark_.lines > 0 && mark_.bytes < bytes) LOCKSTEP_RETURN_IF_ERROR(keep(0, 0));
  LOCKSTEP_RETURN_IF_ERROR(
      for_each_line(history.get(), history_, mark_.bytes, bytes, [this](std::string_view line) {
        take(line);
        return true;
      }));
  return write();
}

Status ThinHistory::add(std::string_view text) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n') + 1);
    take(line);
    text.remove_prefix(line.size());
  }
  if (pending_.empty()) return Status::ok();
  const off_t written = mark_.end - static_cast<off_t>(pending_.size());
  if (is_still_there(fd_.get(), path_, written)) return write();
  return follow(mark_.lines + sums_.steps, mark_.bytes + sums_.bytes);
}

// A line that somebody has changed may lack anything.
void ThinHistory::take(std::string_view line) {
  ++sums_.steps;
  sums_.bytes += static_cast<off_t>(line.size());
  sums_.epoch = whole_after(line, "\"epoch\":");
  sums_.lr = real_after(line, "\"lr\":");
  sums_.samples += whole_after(line, "\"samples\":");
  if (line.find("\"skipped\":true") != std::string_view::npos) ++sums_.skipped;
  if (const double loss = real_after(line, "\"loss\":"); std::isfinite(loss)) {
    sums_.loss += loss;
    sums_.loss_min = sums_.finite == 0 ? loss : std::min(sums_.loss_min, loss);
    sums_.loss_max = sums_.finite == 0 ? loss : std::max(sums_.loss_max, loss);
    ++sums_.finite;
  }
  if (line.find("\"metrics\":{") != std::string_view::npos) {
    const auto parsed = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (parsed.is_object() && parsed["metrics"].is_object()) {
      for (const auto& [name, value] : parsed["metrics"].items()) {
        Sums::Metric& metric = sums_.metrics[name];
        if (!value.is_number()) continue;
        metric.sum += value.get<double>();
        ++metric.finite;
      }
    }
  }
  if (sums_.steps == kThinSteps) pending_ += line_of_sums();
}

std::string ThinHistory::line_of_sums() {
  const auto mean = [](double sum, uint64_t count) {
    return number_text(count == 0 ? kNoNumber : sum / static_cast<double>(count));
  };
  const double none = sums_.finite == 0 ? kNoNumber : 0;
  mark_.lines += sums_.steps;
  mark_.bytes += sums_.bytes;
  std::string line =
      "{\"step\":" + std::to_string(mark_.lines) + ",\"steps\":" + std::to_string(sums_.steps) +
      ",\"epoch\":" + std::to_string(sums_.epoch) + ",\"loss\":" + mean(sums_.loss, sums_.finite) +
      ",\"loss_min\":" + number_text(sums_.loss_min + none) +
      ",\"loss_max\":" + number_text(sums_.loss_max + none) + ",\"lr\":" + number_text(sums_.lr) +
      ",\"samples\":" + std::to_string(sums_.samples) +
      ",\"skipped\":" + std::to_string(sums_.skipped);
  nlohmann::ordered_json metrics = nlohmann::ordered_json::object();
  for (const auto& [name, metric] : sums_.metrics)
    metrics[name] = nlohmann::ordered_json(
        metric.finite == 0 ? kNoNumber : metric.sum / static_cast<double>(metric.finite));
  if (!metrics.empty()) line += ",\"metrics\":" + metrics.dump();
  line += ",\"bytes\":" + std::to_string(mark_.bytes);
  mark_.crc = crc_after(mark_.crc, line);
  line += std::string(kCrcKey) + std::to_string(mark_.crc) + "}\n";
  mark_.end += static_cast<off_t>(line.size());
  sums_ = {};
  return line;
}

Status ThinHistory::write() {
  if (!write_all(fd_.get(), pending_)) return derived_file_error("cannot write", path_);
  pending_.clear();
  return Status::ok();
}

}  // namespace lockstep::coordinator
