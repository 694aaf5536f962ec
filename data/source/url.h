// Addresses of sources, and what stands in them in which way.
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "comm/base/status.h"

namespace lockstep::source {

// "http://", "https://" or "s3://" begins it.
bool is_url(std::string_view path);

// RFC 3986: all but letters, digits and -._~ as %XX; '/' too, unless `keeps_slashes`.
std::string percent_encoded(std::string_view text, bool keeps_slashes);

// kUsage where it holds a user, a password, a query or a fragment: those would stand in the job
// file and in messages. Otherwise without slashes at its end.
Result<std::string> checked_url(const std::string& url);

}  // namespace lockstep::source
