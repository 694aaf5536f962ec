// Says what is wrong with a command line that CLI11 refuses: CLI11 only says that it did not expect
// something.
//
// Thread-safety: the main thread.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "comm/base/status.h"

namespace lockstep {

// kUsage. It names the word, what to take instead, and the command whose help tells more. `words`:
// the words after the program's name.
Status explain_usage(const CLI::App& app, const CLI::ParseError& error,
                     const std::vector<std::string>& words);

// kUsage for a run directory, or for another file or directory that the command writes, that is a
// URL (data/source/url.h).
Status check_written_paths(const CLI::App& command);

// The error for `words`, of which `command` is the last that is a command.
Status no_such_command(const CLI::App& command, const std::vector<std::string>& words);

// "lockstep ckpt ls": the command's words, from the program's name on.
std::string command_words(const CLI::App& command);

// The command that `words` name, as far as they name one.
const CLI::App& named_command(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace lockstep
