#include "deploy/cli/script/script_words.h"

#include <algorithm>
#include <string_view>

#include "comm/base/log.h"

namespace lockstep {
namespace {

// Not sbatch, whose words after "--" are Slurm's.
constexpr std::string_view kCommands[] = {"run", "agent", "resolve", "preflight", "doctor", "k8s"};

}  // namespace

std::vector<std::string> with_script_words(std::vector<std::string> words) {
  const bool takes_job = !words.empty() && std::find(std::begin(kCommands), std::end(kCommands),
                                                     words[0]) != std::end(kCommands);
  const auto dashes = std::find(words.begin(), words.end(), "--");
  if (!takes_job || dashes == words.end()) return words;
  std::string list;
  for (auto word = dashes + 1; word != words.end(); ++word)
    list += (list.empty() ? "\"" : ", \"") + json_escape(*word) + "\"";
  words.erase(dashes, words.end());
  words.push_back("script.args=[" + list + "]");
  return words;
}

}  // namespace lockstep
