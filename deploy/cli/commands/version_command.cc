#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "comm/base/build_info.h"
#include "deploy/cli/commands/commands.h"

namespace lockstep {
namespace {

void print_json(const BuildInfo& info) {
  const nlohmann::ordered_json out = {{"version", info.version},   {"revision", info.revision},
                                      {"compiler", info.compiler}, {"build_type", info.build_type},
                                      {"torch", info.torch},       {"cuda", info.cuda}};
  std::printf("%s\n", out.dump(2).c_str());
}

void print_build(const BuildInfo& info) {
  const auto text = [](std::string_view view) { return std::string(view); };
  std::printf("lockstep %s\nrevision %s\ncompiler %s, %s\nLibTorch %s, CUDA %s\n",
              text(info.version).c_str(), text(info.revision).c_str(), text(info.compiler).c_str(),
              text(info.build_type).c_str(), text(info.torch).c_str(), text(info.cuda).c_str());
}

}  // namespace

std::string version_line() {
  const BuildInfo info = build_info();
  return "lockstep " + std::string(info.version) + " (" + std::string(info.revision) + ")";
}

void add_version_command(CLI::App& app, Commands& commands) {
  auto* command = app.add_subcommand("version", "Print what this program was built from");
  const auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "Print JSON");
  command->footer("Example:\n  lockstep version --json");
  commands[command] = [json] {
    *json ? print_json(build_info()) : print_build(build_info());
    return 0;
  };
}

}  // namespace lockstep
