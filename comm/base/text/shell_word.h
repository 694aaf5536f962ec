// Words of a command that a person pastes into a shell.
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

// True if no shell takes the word apart or changes it.
bool is_plain_word(std::string_view word);

// One word for a POSIX shell: as it is if it is plain, else in quotes.
std::string shell_word(std::string_view word);

}  // namespace lockstep
