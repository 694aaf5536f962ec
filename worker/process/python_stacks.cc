#include "worker/process/python_stacks.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <sstream>
#include <string_view>
#include <thread>

#include "comm/base/file.h"
#include "comm/base/limits.h"

namespace lockstep {
namespace {

constexpr size_t kMostProcesses = 64;
constexpr size_t kToldFrames = 3;
constexpr std::chrono::milliseconds kLookPause{20};
constexpr int kMostLooks = 50;

std::string proc_file(pid_t pid, const char* name) {
  auto text = read_file("/proc/" + std::to_string(pid) + "/" + name, limits::kSystemFileBytes);
  return text.is_ok() ? *text : std::string();
}

// The text after `key` in /proc/PID/status.
std::string status_of(pid_t pid, std::string_view key) {
  std::istringstream lines(proc_file(pid, "status"));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(key)) return line.substr(line.find_first_not_of(" \t", key.size()));
  }
  return "";
}

// Else the signal would end it.
bool has_handler(pid_t pid) {
  const uint64_t caught = std::strtoull(status_of(pid, "SigCgt:").c_str(), nullptr, 16);
  return ((caught >> (python_stack_signal() - 1)) & 1) != 0;
}

// This process first, then each after its parent.
std::vector<pid_t> processes_from_here() {
  std::multimap<pid_t, pid_t> children;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir("/proc"), ::closedir);
  while (const dirent* entry = dir == nullptr ? nullptr : ::readdir(dir.get())) {
    const pid_t pid = std::atoi(entry->d_name);
    if (pid > 0) children.emplace(std::atoi(status_of(pid, "PPid:").c_str()), pid);
  }
  std::vector<pid_t> found{::getpid()};
  for (size_t i = 0; i < found.size() && found.size() < kMostProcesses; ++i) {
    const auto [begin, end] = children.equal_range(found[i]);
    for (auto child = begin; child != end; ++child) found.push_back(child->second);
  }
  return found;
}

off_t size_of(int memory) {
  struct stat info {};
  return ::fstat(memory, &info) == 0 ? info.st_size : 0;
}

// Waits until the text has not grown between two looks. Empty: no text came.
std::string answer_of(pid_t pid, int memory) {
  const off_t begin = size_of(memory);
  if (::kill(pid, python_stack_signal()) != 0) return "";
  off_t before = begin;
  for (int look = 0; look < kMostLooks; ++look) {
    std::this_thread::sleep_for(kLookPause);
    const off_t now = size_of(memory);
    if (now > begin && now == before) break;
    before = now;
  }
  std::string text(static_cast<size_t>(before - begin), '\0');
  const ssize_t n = ::pread(memory, text.data(), text.size(), begin);
  text.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return text;
}

// "train.py:33 in <module>" of `  File "/x/train.py", line 33 in <module>`; empty: no such line.
std::string frame_of(const std::string& line, bool* is_ours) {
  constexpr std::string_view kBegin = "  File \"";
  const size_t end = line.find("\", line ");
  if (!line.starts_with(kBegin) || end == std::string::npos) return "";
  const std::string path = line.substr(kBegin.size(), end - kBegin.size());
  *is_ours = path.find("/lockstep/_") != std::string::npos;
  return path.substr(path.rfind('/') + 1) + ":" + line.substr(end + 8);
}

}  // namespace

int python_stack_signal() {
  return SIGRTMIN + 6;  // as in _stacks.py
}

int make_stack_memory() {
  const int memory = ::memfd_create("lockstep-stacks", MFD_CLOEXEC);
  // Data processes open it again with offsets of their own
  // (worker/python/lockstep/_data/_files.py).
  if (memory >= 0) ::fcntl(memory, F_SETFL, O_APPEND);
  return memory;
}

std::string innermost_frames(const std::string& dump) {
  std::vector<std::string> frames;
  std::string first;
  std::istringstream lines(dump);
  for (std::string line; std::getline(lines, line);) {
    if (line.find("hread 0x") != std::string::npos) {
      frames.clear();
      first.clear();
    }
    bool is_ours = false;
    const std::string frame = frame_of(line, &is_ours);
    if (frame.empty()) continue;
    if (first.empty()) first = frame;
    if (!is_ours && frames.size() < kToldFrames) frames.push_back(frame);
  }
  std::string text = frames.empty() ? first : frames.front();
  for (size_t i = 1; i < frames.size(); ++i) text += ", from " + frames[i];
  return text;
}

PythonStacks take_python_stacks(int memory) {
  PythonStacks stacks;
  for (const pid_t pid : processes_from_here()) {
    const std::string state = status_of(pid, "State:");
    if (state.empty()) continue;  // it has ended meanwhile
    const std::string who = "process " + std::to_string(pid) + " (" + status_of(pid, "Name:") + ")";
    const bool can_answer = state.front() != 'T' && has_handler(pid);
    const std::string answer = can_answer ? answer_of(pid, memory) : "";
    const std::string at = innermost_frames(answer);
    stacks.whole += "\n" + who + ", state " + state + "\n" + answer;
    stacks.brief.push_back(who + (at.empty() ? " is in state " + state : " stands at " + at));
  }
  return stacks;
}

}  // namespace lockstep
