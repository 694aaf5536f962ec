// Names in addresses, as RFC 3986 encodes them.
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::http {

// All but letters, digits and -._~ become %XX; '/' too, unless `keeps_slashes`.
std::string percent_encoded(std::string_view text, bool keeps_slashes);

}  // namespace lockstep::http
