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

void add_run_command(CLI::App& app, Commands& commands);
void add_runs_command(CLI::App& app, Commands& commands);
void add_status_command(CLI::App& app, Commands& commands);
void add_top_command(CLI::App& app, Commands& commands);
void add_ui_command(CLI::App& app, Commands& commands);
void add_report_command(CLI::App& app, Commands& commands);
void add_export_command(CLI::App& app, Commands& commands);
void add_stop_command(CLI::App& app, Commands& commands);
void add_scale_command(CLI::App& app, Commands& commands);
void add_drain_command(CLI::App& app, Commands& commands);
void add_checkpoint_command(CLI::App& app, Commands& commands);
void add_audit_command(CLI::App& app, Commands& commands);
void add_replay_command(CLI::App& app, Commands& commands);
void add_generate_command(CLI::App& app, Commands& commands);
void add_predict_command(CLI::App& app, Commands& commands);
void add_eval_command(CLI::App& app, Commands& commands);
void add_data_command(CLI::App& app, Commands& commands);
void add_doctor_command(CLI::App& app, Commands& commands);
void add_certs_command(CLI::App& app, Commands& commands);
void add_agent_command(CLI::App& app, Commands& commands);
void add_resolve_command(CLI::App& app, Commands& commands);
void add_preflight_command(CLI::App& app, Commands& commands);
void add_sbatch_command(CLI::App& app, Commands& commands);
void add_coordinator_command(CLI::App& app, Commands& commands);
void add_k8s_command(CLI::App& app, Commands& commands);
void add_version_command(CLI::App& app, Commands& commands);
void add_completion_command(CLI::App& app, Commands& commands);
void add_help_command(CLI::App& app, Commands& commands);

// "lockstep 0.2.0 (83ba403)".
std::string version_line();

}  // namespace lockstep
