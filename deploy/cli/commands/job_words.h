// The words by which a command takes a job: the positional argument `job`, and -m in its place.
//
// Thread-safety: the main thread.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace lockstep {

// Describes `job` for a command that takes scripts, and their words after "--".
inline constexpr char kJobWords[] =
    "JOB.yaml or SCRIPT.py, overrides of its keys (train.epochs=3), and behind -- the script's own "
    "words";

// Adds `job`, described by `help`, and -m: both go to `words`, as split_arguments() takes them (-m
// proj.train as script.module=proj.train). `words` outlives the command.
void add_job_words(CLI::App& command, const std::string& help, std::vector<std::string>& words);

}  // namespace lockstep
