#include "deploy/agent/after_loop.h"

#include <charconv>

namespace lockstep {
namespace {

constexpr char kLastWords[] = "lockstep: after its loop the script failed";  // lockstep/_run.py
constexpr char kBegin[] = "the run is complete, but after its loop the script of worker ";
constexpr char kCode[] = " ended with exit code ";

}  // namespace

std::string failure_after_loop(const WorkerEnd& worker) {
  const size_t at = worker.last_words.find(kLastWords);
  if (worker.end.exit_code <= 0 || at == std::string::npos) return {};
  std::string error = worker.last_words.substr(0, at == 0 ? 0 : at - 1);
  error.erase(0, error.rfind('\n') + 1);  // what a traceback ends with
  return kBegin + std::to_string(worker.local_rank) + kCode + std::to_string(worker.end.exit_code) +
         (error.empty() ? "" : "; it said: " + error) +
         "; read its output in the run directory's logs, and mend the code after the loop";
}

bool AfterLoop::see(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    const size_t begin = line.find(kBegin);
    const size_t code = begin == std::string::npos ? begin : line.find(kCode, begin);
    if (exit_code != 0 || code == std::string::npos) continue;
    std::from_chars(line.data() + code + sizeof kCode - 1, line.data() + line.size(), exit_code);
    what = line.substr(begin);
    return exit_code != 0;
  }
  return false;
}

}  // namespace lockstep
