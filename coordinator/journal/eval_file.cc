#include "coordinator/journal/eval_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <utility>

#include "comm/base/descriptors.h"
#include "coordinator/journal/derived_file.h"

namespace lockstep::coordinator {
namespace {

std::string share_text(uint64_t part, uint64_t whole) {
  return number_text(static_cast<double>(part) / static_cast<double>(whole));
}

}  // namespace

std::string eval_line(const EvalEntry& eval, bool of_tokens) {
  std::string line = "{\"step\":" + std::to_string(eval.step) +
                     ",\"epoch\":" + std::to_string(eval.epoch) +
                     ",\"loss\":" + number_text(eval.loss);
  if (!eval.no_accuracy)
    line += ",\"accuracy\":" + share_text(eval.correct, eval.samples) +
            ",\"correct\":" + std::to_string(eval.correct);
  line += ",\"samples\":" + std::to_string(eval.samples);
  if (eval.top5) line += ",\"top5\":" + share_text(*eval.top5, eval.samples);
  if (of_tokens) line += ",\"perplexity\":" + number_text(std::exp(eval.loss));
  if (eval.lr) line += ",\"lr\":" + number_text(*eval.lr);
  line += metrics_text(eval.metrics);
  return line + "}\n";
}

Result<std::unique_ptr<EvalFile>> EvalFile::open(const std::string& path, bool of_tokens) {
  std::unique_ptr<EvalFile> file(new EvalFile(path, of_tokens));
  LOCKSTEP_RETURN_IF_ERROR(file->begin_anew());
  return file;
}

Status EvalFile::begin_anew() {
  lines_.clear();
  fd_ = Descriptor(
      ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644));
  return fd_.is_open() ? Status::ok() : derived_file_error("cannot open", path_);
}

bool EvalFile::is_whole() const {
  return is_still_there(fd_.get(), path_, lines_.empty() ? 0 : lines_.back().end);
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
  if (::ftruncate(fd_.get(), end) != 0 || ::lseek(fd_.get(), end, SEEK_SET) < 0)
    return derived_file_error("cannot cut", path_);
  return Status::ok();
}

Result<bool> EvalFile::correct(const std::map<Step, EvalEntry>& evals) {
  LOCKSTEP_RETURN_IF_ERROR(follow(evals));
  std::ifstream file(path_);
  const bool is_same = std::all_of(evals.begin(), evals.end(), [&](const auto& eval) {
    std::string line;
    return std::getline(file, line) && line + "\n" == eval_line(eval.second, of_tokens_);
  });
  if (is_same) return false;
  LOCKSTEP_RETURN_IF_ERROR(begin_anew());
  LOCKSTEP_RETURN_IF_ERROR(follow(evals));
  return true;
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
  return write_all(fd_.get(), text) ? Status::ok() : derived_file_error("cannot write", path_);
}

}  // namespace lockstep::coordinator
