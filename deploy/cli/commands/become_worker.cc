#include "deploy/cli/commands/become_worker.h"

#include <unistd.h>

#include <cerrno>

#include "comm/base/file.h"
#include "deploy/agent/process.h"
#include "deploy/agent/worker_launch.h"
#include "deploy/cli/base/console.h"

namespace lockstep {

int become_worker(std::vector<std::string> words) {
  const auto program = worker_program(sibling_program(""));
  if (!program.is_ok()) return report(program.status());
  words.insert(words.begin(), *program);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execv(program->c_str(), argv.data());
  return report(Status(Code::kConfig, "cannot start " + *program + ": " + errno_text(errno)));
}

}  // namespace lockstep
