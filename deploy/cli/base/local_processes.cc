#include "deploy/cli/base/local_processes.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

// None for a process that is gone, and for the kernel's own.
std::vector<std::string> words_of(const fs::path& process) {
  std::ifstream file(process / "cmdline", std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\0', at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

std::string value_of(const std::vector<std::string>& words, const std::string& option) {
  const auto at = std::find(words.begin(), words.end(), option);
  return at == words.end() || at + 1 == words.end() ? "" : *(at + 1);
}

enum class Program { kOther, kCoordinator, kAgent, kWorker };

Program program_of(const std::vector<std::string>& words, const std::string& run_dir) {
  if (words.empty() || value_of(words, "--run-dir") != run_dir) return Program::kOther;
  const std::string name = fs::path(words[0]).filename().string();
  if (name == "lockstep-worker") return Program::kWorker;
  if (name == "lockstep-coordinator") return Program::kCoordinator;
  const bool is_agent = name == "lockstep" && words.size() > 1 && words[1] == "agent";
  return is_agent ? Program::kAgent : Program::kOther;
}

}  // namespace

LocalProcesses local_processes(const std::string& run_dir) {
  LocalProcesses found;
  std::error_code error;
  for (fs::directory_iterator it("/proc", error), end; !error && it != end; it.increment(error)) {
    const std::string pid = it->path().filename().string();
    if (!std::all_of(pid.begin(), pid.end(), [](unsigned char c) { return std::isdigit(c) != 0; }))
      continue;
    const auto words = words_of(it->path());
    const Program program = program_of(words, run_dir);
    if (program == Program::kWorker) found.nodes.insert(value_of(words, "--node"));
    if (program == Program::kAgent) ++found.agents;
  }
  found.nodes.erase("");
  return found;
}

std::vector<pid_t> children_of_run(const std::string& run_dir) {
  std::vector<pid_t> found;
  std::error_code error;
  for (fs::directory_iterator it("/proc/self/task", error), end; !error && it != end;
       it.increment(error)) {
    std::ifstream file(it->path() / "children");
    for (pid_t child = 0; file >> child;) {
      const auto words = words_of(fs::path("/proc") / std::to_string(child));
      if (program_of(words, run_dir) != Program::kOther) found.push_back(child);
    }
  }
  return found;
}

}  // namespace lockstep
