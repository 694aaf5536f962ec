#include <cstdio>
#include <memory>

#include "deploy/cli/commands/commands.h"
#include "deploy/cli/job/job_schema.h"
#include "deploy/cli/keys/job_list.h"

namespace lockstep {
namespace {

std::string job_key_words() {
  std::string words;
  for (const JobKey& key : job_keys()) words += numbered_key(key, 0) + "= ";
  return words;
}

std::string choice_cases() {
  std::string cases;
  for (const JobKey& key : job_keys()) {
    if (key.names.empty()) continue;
    cases += "    " + numbered_key(key, 0) + "=*) values='";
    for (std::string_view name : key.names) cases += std::string(name) + " ";
    cases += "' ;;\n";
  }
  return cases;
}

std::string option_words(const CLI::App& command) {
  std::string words;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) words += "--" + name + " ";
  return words;
}

// One case for each command: its subcommands and long options, read off the parser itself.
std::string command_cases(const CLI::App& app, const std::string& path) {
  std::string words;
  std::string cases;
  for (const CLI::App* sub : app.get_subcommands({})) {
    words += sub->get_name() + " ";
    cases += command_cases(*sub, path + " " + sub->get_name());
  }
  return "    '" + path + "') words='" + words + option_words(app) + "' ;;\n" + cases;
}

std::string bash_script(const CLI::App& root) {
  return "# bash completion of lockstep; put 'source <(lockstep completion bash)' into ~/.bashrc\n"
         "_lockstep() {\n"
         "  local cur words='' values='' path='lockstep' i word\n"
         "  # '=' splits words in bash; an override is one word to us.\n"
         "  local line=\"${COMP_LINE:0:COMP_POINT}\"; cur=\"${line##* }\"\n"
         "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
         "    word=\"${COMP_WORDS[i]}\"\n"
         "    case \"$path $word\" in\n"
         "      lockstep\\ [a-z]*|'lockstep ckpt '[a-z]*|'lockstep data '[a-z]*)\n"
         "        [[ $path == 'lockstep' || $path == 'lockstep ckpt' || $path == 'lockstep data' "
         "]] "
         "&&\n"
         "          path=\"$path $word\" ;;\n"
         "    esac\n"
         "  done\n"
         "  case \"$path\" in\n" +
         command_cases(root, "lockstep") +
         "  esac\n"
         "  case \"$cur\" in\n" +
         choice_cases() +
         "  esac\n"
         "  if [[ -n $values ]]; then\n"
         "    COMPREPLY=($(compgen -W \"$values\" -- \"${cur#*=}\"))\n"
         "  elif [[ $path == 'lockstep run' && $cur != -* ]]; then\n"
         "    compopt -o nospace\n"
         "    COMPREPLY=($(compgen -W '" +
         job_key_words() +
         "' -- \"$cur\") $(compgen -f -- \"$cur\"))\n"
         "  else\n"
         "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
         "    [[ ${#COMPREPLY[@]} -gt 0 || $cur == -* ]] || COMPREPLY=($(compgen -f -- \"$cur\"))\n"
         "  fi\n"
         "}\n"
         "complete -F _lockstep lockstep\n";
}

}  // namespace

void add_completion_command(CLI::App& app, Commands& commands) {
  auto* command = app.add_subcommand("completion", "Print a completion script for a shell");
  const auto shell = std::make_shared<std::string>();
  command->add_option("shell", *shell, "bash or zsh")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh"}));
  command->footer(
      "Examples:\n  source <(lockstep completion bash)\n"
      "  source <(lockstep completion zsh)");
  commands[command] = [shell, &app] {
    if (*shell == "zsh") std::fputs("autoload -U +X bashcompinit && bashcompinit\n", stdout);
    std::fputs(bash_script(app).c_str(), stdout);
    return 0;
  };
}

}  // namespace lockstep
