// The subcommands of `lockstep`. Each function adds one subcommand with its options, help and
// examples to the parser, and its Command to `commands`. The Command owns the object that holds the
// options.
//
// Thread-safety: the main thread.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <map>
#include <string>

namespace lockstep {

// Runs the chosen subcommand and returns the exit code of the process.
using Command = std::function<int()>;
using Commands = std::map<const CLI::App*, Command>;

// Exit code of a command that needs a live run and finds none, as "systemctl status" has it.
inline constexpr int kNotRunning = 3;

// Every subcommand, in the order in which `lockstep --help` lists them: the one list of them.
// clang-format off
#define LOCKSTEP_COMMANDS(ADD)                                                              \
  ADD(run) ADD(runs) ADD(status) ADD(top) ADD(ui) ADD(report) ADD(export) ADD(stop)         \
  ADD(scale) ADD(drain) ADD(checkpoint) ADD(audit) ADD(replay) ADD(predict) ADD(eval)       \
  ADD(generate) ADD(data) ADD(doctor) ADD(certs) ADD(k8s) ADD(version) ADD(completion)      \
  ADD(help) ADD(resolve) ADD(agent) ADD(preflight) ADD(sbatch) ADD(store)                   \
  ADD(coordinator)
// clang-format on

#define LOCKSTEP_DECLARE(name) void add_##name##_command(CLI::App& app, Commands& commands);
LOCKSTEP_COMMANDS(LOCKSTEP_DECLARE)
#undef LOCKSTEP_DECLARE

// "lockstep 0.3.0 (83ba403)".
std::string version_line();

}  // namespace lockstep
