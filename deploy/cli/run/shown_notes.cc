#include "deploy/cli/run/shown_notes.h"

#include "comm/base/byte_units.h"
#include "comm/base/file.h"
#include "comm/run/directory/layout.h"

namespace lockstep {
namespace {

constexpr size_t kMostBytes = 64 * kKib;
constexpr size_t kMostLines = 8;

}  // namespace

WorkerNotes::WorkerNotes(const std::string& run_dir)
    : model_{rundir::log_in(run_dir, rundir::kModelNotes)},
      waits_{rundir::log_in(run_dir, rundir::kWaits)} {
  if (const auto text = read_file(waits_.path, kMostBytes); text.is_ok())
    waits_.bytes = text->size();
}

void WorkerNotes::tell(Told& told, std::vector<std::string>& lines) {
  if (told.lines > kMostLines) return;
  const auto text = read_file(told.path, kMostBytes);
  if (!text.is_ok()) return;
  for (size_t end = 0; (end = text->find('\n', told.bytes)) != std::string::npos;
       told.bytes = end + 1) {
    if (++told.lines > kMostLines) {
      lines.push_back("note: more is in " + told.path);
      return;
    }
    lines.push_back("note: " + text->substr(told.bytes, end - told.bytes));
  }
}

std::vector<std::string> WorkerNotes::news() {
  std::vector<std::string> lines;
  tell(model_, lines);
  tell(waits_, lines);
  return lines;
}

}  // namespace lockstep
