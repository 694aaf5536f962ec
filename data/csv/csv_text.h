// Text of a table as messages and rules need it. Every byte of it is from outside.
//
// Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep::data {

// Between quotes, in one line, cut where it is long; bytes that cannot be shown become '?'.
std::string shown(std::string_view text);

// Without blanks and tabs at its ends.
std::string_view trimmed(std::string_view text);

}  // namespace lockstep::data
