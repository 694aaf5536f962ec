// The words after "--" on a command line, which are the script's own (sys.argv).
//
// Thread-safety: a pure function.
#pragma once

#include <string>
#include <vector>

namespace lockstep {

// `words`: the command line without the program. If the command takes a job, the words after the
// first "--" become one override, script.args=[...], because they may look like options.
std::vector<std::string> with_script_words(std::vector<std::string> words);

}  // namespace lockstep
