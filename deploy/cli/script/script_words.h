// The words behind "--" on a command line, which are the script's own (sys.argv).
//
// Thread-safety: a pure function.
#pragma once

#include <string>
#include <vector>

namespace lockstep {

// `words`: of the command line, without the program. Of a command that takes a job, the words
// behind the first "--" become one override, script.args=[...], for they may look like options.
std::vector<std::string> with_script_words(std::vector<std::string> words);

}  // namespace lockstep
