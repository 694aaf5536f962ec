#include "deploy/agent/worker_launch.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <utility>

#include "comm/base/descriptors.h"
#include "comm/base/file.h"
#include "comm/run/job/predictions.h"
#include "deploy/agent/launch_env.h"

namespace lockstep {
namespace {

constexpr uint32_t kLeaveSecondsBefore = 10;  // of a run that was begun before there was the key

// The exit codes of the module check in check_python().
constexpr int kTooOld = 3;
constexpr int kNoLockstep = 4;
constexpr int kNoTorch = 5;
// Python looks for modules in the working directory first, which the user has not chosen: a file
// there that is called like one of torch's modules would run. (-P is Python 3.11's.)
constexpr char kNotFromHere[] = "import sys; sys.path[0] == '' and sys.path.pop(0)";
constexpr char kStartScript[] = "; from lockstep._script import start_main; start_main()";
// The folder of a package, or the file of a module, which is not imported for it.
constexpr char kWhereFrom[] =
    "\n"
    "from importlib.util import find_spec\n"
    "spec = find_spec(sys.argv[1])\n"
    "sys.exit(3) if spec is None else print(*list(spec.submodule_search_locations or "
    "[spec.origin])[:1])\n";
constexpr char kModuleCheck[] =
    "\n"
    "if sys.version_info < (3, 10): sys.exit(3)\n"
    "from importlib.util import find_spec\n"
    "sys.exit(4 if find_spec('lockstep') is None else 5 if find_spec('torch') is None else 0)\n";

std::string text_of(const VariableFn& variable, const char* name) {
  const char* value = variable(name);
  return value == nullptr ? "" : value;
}

bool is_program(const std::string& file) {
  std::error_code error;
  return std::filesystem::is_regular_file(file, error) && ::access(file.c_str(), X_OK) == 0;
}

// Finds a program as a shell does; empty: it is not there.
std::string find_program(const std::string& name, std::string_view path) {
  if (name.find('/') != std::string::npos) return is_program(name) ? name : "";
  while (!path.empty()) {
    const size_t end = std::min(path.find(':'), path.size());
    const std::string file = std::string(path.substr(0, end)) + "/" + name;
    if (end > 0 && is_program(file)) return file;
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return "";
}

Result<std::string> find_python(const VariableFn& variable) {
  const std::string named = text_of(variable, "LOCKSTEP_PYTHON");
  const std::string name = named.empty() ? "python3" : named;
  std::string found = find_program(name, text_of(variable, "PATH"));
  if (!found.empty()) return found;
  if (named.empty())
    return Status(Code::kConfig,
                  "there is no python3 in PATH, and a script needs one; set LOCKSTEP_PYTHON to a "
                  "Python that has the modules lockstep and torch");
  return Status(Code::kConfig, "LOCKSTEP_PYTHON is " + named +
                                   ", which is no program; name a Python that has the modules "
                                   "lockstep and torch");
}

// The modules next to this program come before installed ones of another version.
std::vector<std::string> script_env(const wire::JobSpec& job, const std::string& directory,
                                    const VariableFn& variable) {
  const uint32_t threads = std::max(1u, job.train().threads_per_worker());
  std::vector<std::string> env = {"OMP_NUM_THREADS=" + std::to_string(threads)};
  // Else the order of a set of strings is another one in each process.
  if (text_of(variable, "PYTHONHASHSEED").empty()) env.push_back("PYTHONHASHSEED=0");
  std::error_code error;
  const std::string modules = std::filesystem::path(directory) / "python";
  if (!std::filesystem::is_directory(modules, error)) return env;
  const std::string others = text_of(variable, "PYTHONPATH");
  env.push_back("PYTHONPATH=" + modules + (others.empty() ? "" : ":" + others));
  return env;
}

// The words for `python -m`, before the file and the script's own words.
std::vector<std::string> words_of_script(const wire::ScriptSpec& script) {
  std::vector<std::string> words;
  if (!script.module().empty()) words = {"-m", script.module()};
  words.push_back(script.path());
  words.insert(words.end(), script.args().begin(), script.args().end());
  return words;
}

// A process and its output, which is kept in memory.
struct Heard {
  ProcessEnd end;
  std::string words;
};

Result<Heard> hear(std::vector<std::string> words) {
  const Descriptor said(::memfd_create("lockstep-said", MFD_CLOEXEC));
  if (said.get() < 0)
    return Status(Code::kInternal, "cannot make a file in memory: " + errno_text(errno));
  const std::string output = "/proc/self/fd/" + std::to_string(said.get());
  LOCKSTEP_ASSIGN_OR_RETURN(const pid_t pid,
                            start_process({.argv = std::move(words), .output_path = output}));
  Heard heard{.end = wait_for_end(pid), .words = ""};
  heard.words = last_words(output);
  return heard;
}

// A package and a wheel have a launcher under the program's name (deploy/package/with_wheel.sh.in).
bool is_launcher(const std::string& program) {
  std::array<char, 2> mark{};
  std::ifstream(program, std::ios::binary).read(mark.data(), mark.size());
  return mark == std::array<char, 2>{'#', '!'};
}

// The launcher knows which Python has the torch that the program needs.
Status check_libraries(const std::string& launcher) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Heard heard, hear({launcher, "--find-libraries"}));
  if (heard.end.is_success()) return Status::ok();
  const std::string line = last_line(heard.words);
  if (heard.end.exit_code == exit_code(Status(Code::kConfig, ""))) return {Code::kConfig, line};
  return {Code::kConfig, launcher + " does not work: it " + heard.end.text() +
                             (line.empty() ? "" : ", after saying: " + line) +
                             "; install Lockstep again"};
}

std::string flag_of(const WorkerOption& option) {
  return "--" + std::string(option.name);
}

std::string line_of(const WorkerOption& option) {
  std::string key(option.name);
  std::replace(key.begin(), key.end(), '-', '_');
  return key + "=" + option.value;
}

}  // namespace

Result<std::string> worker_program(const std::string& directory) {
  std::string program = directory + "lockstep-worker";
  if (!is_program(program))
    return Status(Code::kConfig,
                  "there is no " + program +
                      ", which computes models without a script; build Lockstep with LibTorch "
                      "(deploy/quickstart.sh)");
  if (is_launcher(program)) LOCKSTEP_RETURN_IF_ERROR(check_libraries(program));
  return program;
}

Result<WorkerLaunch> worker_launch(const wire::JobSpec& job, const std::string& directory,
                                   const VariableFn& variable) {
  if (!is_script(job.model())) {
    auto program = worker_program(directory);
    if (!program.is_ok())
      return Status(program.status().code(), program.status().message() +
                                                 ", or train with a script (lockstep run "
                                                 "train.py)");
    return WorkerLaunch{.words = {std::move(program).value()}};
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string python, find_python(variable));
  WorkerLaunch launch{.words = {python, "-u", "-c", std::string(kNotFromHere) + kStartScript},
                      .env = script_env(job, directory, variable),
                      .is_script = true};
  const std::vector<std::string> words = words_of_script(job.script());
  launch.words.insert(launch.words.end(), words.begin(), words.end());
  return launch;
}

std::string imported_from(const std::string& name, const VariableFn& variable) {
  const auto python = find_python(variable);
  if (!python.is_ok()) return {};
  const auto heard = hear({*python, "-c", std::string(kNotFromHere) + kWhereFrom, name});
  if (!heard.is_ok() || !heard->end.is_success()) return {};
  return last_line(heard->words);  // what comes before is another module's
}

Status check_python(const WorkerLaunch& launch) {
  if (!launch.is_script) return Status::ok();
  const std::string& python = launch.words[0];
  ProcessSpec spec{.argv = {python, "-c", std::string(kNotFromHere) + kModuleCheck},
                   .output_path = "/dev/null"};
  spec.env = launch.env;
  LOCKSTEP_ASSIGN_OR_RETURN(const pid_t pid, start_process(spec));
  const ProcessEnd end = wait_for_end(pid);
  const auto refused = [&](const std::string& what) {
    return Status(Code::kConfig, "the Python " + python + " " + what +
                                     ", or set LOCKSTEP_PYTHON to another Python");
  };
  if (end.exit_code == kTooOld) return refused("is older than 3.10; install a newer one");
  if (end.exit_code == kNoLockstep)
    return refused("has no module lockstep; install it with pip install lockstep");
  if (end.exit_code == kNoTorch)
    return refused("has no module torch; install it with pip install torch");
  if (!end.is_success()) return refused("does not work: it " + end.text() + "; repair it");
  return Status::ok();
}

Result<ProcessSpec> process_of(const WorkerLaunch& launch,
                               const std::vector<WorkerOption>& options) {
  ProcessSpec spec;
  spec.argv = launch.words;
  spec.env = launch.env;
  std::string lines;
  for (const WorkerOption& option : options) {
    if (!launch.is_script) {
      spec.argv.insert(spec.argv.end(), {flag_of(option), option.value});
      continue;
    }
    if (option.value.find('\n') != std::string::npos)
      return Status(Code::kConfig, "the " + std::string(option.name) +
                                       " of a worker holds a line break, which a script's worker "
                                       "cannot read; take another name");
    lines += (lines.empty() ? "" : "\n") + line_of(option);
  }
  if (!launch.is_script) return spec;
  spec.env.push_back("LOCKSTEP_WORKER=" + lines);
  spec.is_left_out = is_launch_variable;
  return spec;
}

int64_t leave_ms_of(const wire::JobSpec& job) {
  const uint32_t seconds = job.cluster().leave_s();
  return int64_t{1000} * (seconds == 0 ? kLeaveSecondsBefore : seconds);
}

}  // namespace lockstep
