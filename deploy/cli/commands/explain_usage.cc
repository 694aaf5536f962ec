#include "deploy/cli/commands/explain_usage.h"

#include <algorithm>
#include <cctype>

#include "comm/base/log.h"
#include "comm/base/text/nearest.h"
#include "comm/base/text/shell_word.h"
#include "data/source/url.h"
#include "deploy/cli/script/script_block.h"

namespace lockstep {
namespace {

// The names by which commands take the place of a run.
constexpr const char* kRunDirOptions[] = {"--run-dir", "run-dir", "run-or-dir", "directory",
                                          "run-or-checkpoint"};

// The names by which commands take what they write: files of export, report, predict, eval, replay
// and sbatch; directories of export, pack and certs; caches.
constexpr const char* kWrittenOptions[] = {"dir",   "to",          "--output",     "--out",
                                           "--dir", "--confusion", "--batch-file", "--cache-dir"};

// Words by which people look for a command that has another name here.
struct OtherName {
  std::string_view word;
  std::string_view command;
};
constexpr OtherName kOtherNames[] = {
    {"train", "lockstep run"},
    {"fit", "lockstep run"},
    {"launch", "lockstep run"},
    {"start", "lockstep run"},
    {"submit", "lockstep sbatch"},
    {"resume", "lockstep run --resume"},
    {"restart", "lockstep run --resume"},
    {"continue", "lockstep run --resume"},
    {"ls", "lockstep runs"},
    {"list", "lockstep runs"},
    {"ps", "lockstep runs"},
    {"jobs", "lockstep runs"},
    {"compare", "lockstep report"},
    {"plot", "lockstep report"},
    {"kill", "lockstep stop"},
    {"cancel", "lockstep stop"},
    {"pause", "lockstep stop"},
    {"abort", "lockstep stop"},
    {"end", "lockstep stop"},
    {"quit", "lockstep stop"},
    {"watch", "lockstep top"},
    {"monitor", "lockstep top"},
    {"dashboard", "lockstep ui"},
    {"web", "lockstep ui"},
    {"info", "lockstep status"},
    {"show", "lockstep status"},
    {"logs", "lockstep status"},
    {"log", "lockstep status"},
    {"tensorboard", "lockstep export tensorboard"},
    {"checkpoint", "lockstep ckpt"},
    {"checkpoints", "lockstep ckpt"},
    {"resize", "lockstep scale"},
    {"remove", "lockstep drain"},
    {"inspect", "lockstep data inspect"},
    {"pack", "lockstep data pack"},
    {"index", "lockstep data index"},
    {"verify", "lockstep ckpt verify"},
    {"config", "lockstep run --print-config"},
    {"keys", "lockstep run --help-job"},
    {"profile", "lockstep run --trace"},
    {"trace", "lockstep run --trace"},
    {"bench", "lockstep doctor"},
    {"benchmark", "lockstep doctor"},
    {"check", "lockstep doctor"},
    {"diagnose", "lockstep doctor"},
    {"kubernetes", "lockstep k8s"},
    {"slurm", "lockstep sbatch"},
    {"worker", "lockstep agent"},
    {"join", "lockstep agent"},
};

// Guesses what the user meant: another program's word, or the word nearest to those and our own.
std::string hint_for(const CLI::App& parent, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* sub : parent.get_subcommands({})) names.push_back(sub->get_name());
  std::vector<std::string_view> views(names.begin(), names.end());
  if (parent.get_parent() != nullptr) return did_you_mean(word, views);
  for (const OtherName& other : kOtherNames) views.push_back(other.word);
  const std::string_view nearest = nearest_word(word, views);
  for (const OtherName& other : kOtherNames)
    if (other.word == nearest) return "; did you mean '" + std::string(other.command) + "'?";
  return did_you_mean(word, views);
}

// The command's own options and its groups' options. CLI11 keeps groups as commands without a name.
std::vector<const CLI::Option*> options_of(const CLI::App& command) {
  std::vector<const CLI::Option*> options = command.get_options();
  for (const CLI::App* group :
       command.get_subcommands([](const CLI::App* sub) { return sub->get_name().empty(); })) {
    const auto more = group->get_options();
    options.insert(options.end(), more.begin(), more.end());
  }
  return options;
}

bool has_option(const CLI::App& command, const std::string& name) {
  const auto options = options_of(command);
  return std::any_of(options.begin(), options.end(),
                     [&](const CLI::Option* option) { return option->check_name(name); });
}

// The first word that looks like an option and is none of the command's; "" if there is none.
std::string unknown_option(const CLI::App& command, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word == "--") break;  // what follows is no option
    const std::string name = word.substr(0, word.find('='));
    if (word.starts_with("--") && !has_option(command, name)) return name;
    const bool is_letter = word.size() > 1 && word[0] == '-' && std::isalpha(word[1]) != 0;
    if (is_letter && !has_option(command, word.substr(0, 2))) return word.substr(0, 2);
  }
  return "";
}

constexpr char kScriptOptions[] =
    "; options of a script stand behind --, as in train.py -- --lr 0.1";

bool names_script(const std::vector<std::string>& words) {
  return std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return is_script_file(word) || word == "-m" || word.starts_with("--module");
  });
}

// How many words name the command, after the program's name.
size_t depth_of(const CLI::App& command) {
  size_t depth = 0;
  for (const CLI::App* at = &command; at->get_parent() != nullptr; at = at->get_parent()) ++depth;
  return depth;
}

// The nearest of the command's options, or all of them if none is near.
std::string options_instead(const CLI::App& command, const std::string& wrong) {
  std::vector<std::string> names;
  for (const CLI::Option* option : options_of(command))
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  const std::vector<std::string_view> views(names.begin(), names.end());
  std::string nearest = wrong.size() > 2 ? did_you_mean(wrong, views) : "";
  if (!nearest.empty()) return nearest;
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "; it has " : ", ") + name;
  return all;
}

}  // namespace

std::string command_words(const CLI::App& command) {
  const CLI::App* const parent = command.get_parent();
  return parent == nullptr ? command.get_name() : command_words(*parent) + " " + command.get_name();
}

const CLI::App& named_command(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* at = &app;
  for (const std::string& word : words) {
    const auto subs =
        at->get_subcommands([&](const CLI::App* sub) { return sub->get_name() == word; });
    if (subs.empty()) break;
    at = subs.front();
  }
  return *at;
}

Status no_such_command(const CLI::App& command, const std::vector<std::string>& words) {
  const std::string& wrong = words[depth_of(command)];
  const std::string name = command_words(command);
  const size_t program = name.find(' ');
  const std::string before = program == std::string::npos ? "" : name.substr(program + 1) + " ";
  return Status(Code::kUsage, "there is no command '" + before + json_escape(wrong) + "'" +
                                  hint_for(command, wrong) + "; try '" + name + " --help'");
}

Status explain_usage(const CLI::App& app, const CLI::ParseError& error,
                     const std::vector<std::string>& words) {
  const CLI::App& command = named_command(app, words);
  const auto begin = words.begin() + static_cast<std::ptrdiff_t>(depth_of(command));
  const std::vector<std::string> rest(begin, words.end());
  const bool has_commands =
      !command.get_subcommands([](const CLI::App* sub) { return !sub->get_name().empty(); })
           .empty();
  if (has_commands && !rest.empty() && !rest[0].empty() && rest[0][0] != '-')
    return no_such_command(command, words);
  const std::string name = command_words(command);
  const std::string more = "; try '" + name + " --help'";
  if (const std::string option = unknown_option(command, rest); !option.empty())
    return Status(Code::kUsage,
                  "'" + name + "' has no option " + json_escape(option) +
                      (names_script(rest) ? kScriptOptions : options_instead(command, option)) +
                      more);
  return Status(Code::kUsage, error.what() + more);
}

Status check_written_paths(const CLI::App& command) {
  for (const CLI::Option* option : options_of(command)) {
    const auto is_one_of = [option](const auto& names) {
      return std::ranges::any_of(names, [&](const char* name) { return option->check_name(name); });
    };
    const bool is_run_dir = is_one_of(kRunDirOptions);
    if (!is_run_dir && !is_one_of(kWrittenOptions)) continue;
    for (const std::string& given : option->results()) {
      if (!source::has_scheme(given)) continue;
      if (is_run_dir)
        return Status(Code::kUsage,
                      "the run directory " + shell_word(given) +
                          " is a URL, and Lockstep keeps runs in directories; name a path that all "
                          "machines of the run see, such as /shared/runs/first");
      return Status(Code::kUsage, option->get_name() + " is " + shell_word(given) +
                                      ", a URL, and Lockstep writes no objects of a store; name a "
                                      "path of this machine, and copy from there");
    }
  }
  return Status::ok();
}

}  // namespace lockstep
