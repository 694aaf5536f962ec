// Starts, describes and ends child processes, for the agent and for `lockstep run`.
//
// Invariants
//   1. A child runs in a process group of its own, so that a terminal's Ctrl-C reaches its parent
//      only, and gets `parent_death_signal` when its parent dies, however it dies.
//   2. A child inherits no descriptor but stdin (/dev/null), stdout, stderr and `kept_descriptor`,
//      no signal mask, and of the signals that a program here handles none that is ignored but
//      SIGHUP.
//   3. When start_process() returns ok, the program runs. A program that cannot be executed is an
//      error of start_process(), not of the child.
//
// Thread-safety: free functions. start_process() must be called on a thread that lives as long as
// the children should: the kernel sends the parent's death signal when that thread ends.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "comm/base/status.h"

namespace lockstep {

struct ProcessSpec {
  std::vector<std::string> argv;  // argv[0]: path of the program
  std::string output_path;        // stdout and stderr are appended here; empty: the parent's
  int parent_death_signal = 0;    // 0: none
  int kept_descriptor = -1;       // the same number there; -1: none
  std::string preload = {};       // a library in front of LD_PRELOAD; empty: none
  // "NAME=value": added to this process's own variables; replaces one of the same name.
  std::vector<std::string> env = {};
  // True for names of this process's own variables that the child does not get; null: it gets all.
  bool (*is_left_out)(std::string_view name) = nullptr;
};

// kConfig if the program is missing or cannot be executed, or its output file cannot be opened. The
// message names which.
Result<pid_t> start_process(const ProcessSpec& spec);

// How a process ended, from waitpid().
struct ProcessEnd {
  int exit_code = -1;  // -1: killed by `signal`
  int signal = 0;

  static ProcessEnd from_wait_status(int wait_status);
  bool is_success() const { return exit_code == 0; }
  // True if a signal ended it, or an exit code that none of our programs chooses.
  bool is_death() const;
  // True if it was no program for this machine: a library is missing, or the file is damaged.
  bool cannot_run() const;
  // "exited with code 3", "was killed by signal 9 (Killed)".
  std::string text() const;
};

struct Reaped {
  pid_t pid = 0;  // 0: no child has ended
  ProcessEnd end;
};

// One child that has ended, without waiting.
Reaped reap_one();

// Waits until a child has ended.
ProcessEnd wait_for_end(pid_t pid);

// The program `name` in the directory of the running one, e.g. "/opt/lockstep/bin/lockstep-worker".
std::string sibling_program(const std::string& name);

// The last lines that a process wrote before it died: of a text file from `begin` on, at most
// `limit_bytes`, without control characters. "" if there are none.
std::string last_words(const std::string& path, int64_t begin = 0, size_t limit_bytes = 2000);
// The last line of these words, without the "lockstep: " that our programs begin an error with.
std::string last_line(const std::string& words);
// The offset where the output of the next process will begin; 0 if there is no such file yet.
int64_t end_of_file(const std::string& path);

}  // namespace lockstep
