#include "deploy/cli/run/shown_notes.h"

#include "comm/base/byte_units.h"
#include "comm/base/file.h"
#include "comm/rundir/layout.h"

namespace lockstep {
namespace {

constexpr size_t kMostBytes = 64 * kKib;
constexpr size_t kMostLines = 8;

}  // namespace

ModelNotes::ModelNotes(const std::string& run_dir)
    : path_(rundir::log_in(run_dir, rundir::kModelNotes)) {}

std::vector<std::string> ModelNotes::once() {
  std::vector<std::string> lines;
  if (is_told_) return lines;
  const auto text = read_file(path_, kMostBytes);
  if (!text.is_ok()) return lines;
  is_told_ = true;
  size_t begin = 0;
  for (size_t end = 0; (end = text->find('\n', begin)) != std::string::npos; begin = end + 1) {
    if (lines.size() == kMostLines) {
      lines.push_back("note: more about the model is in " + path_);
      break;
    }
    lines.push_back("note: " + text->substr(begin, end - begin));
  }
  return lines;
}

}  // namespace lockstep
