// Addresses of sources: which are allowed.
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "comm/base/status.h"

namespace lockstep::source {

// Whether it begins with "http://", "https://" or "s3://".
bool is_url(std::string_view path);

// Whether it is a URL of any scheme, such as "gs://bucket/x". Lockstep never writes to a URL: taken
// as a path, it would make a folder called gs:.
bool has_scheme(std::string_view path);

// The URL without slashes at its end. kUsage if it holds a user, a password, a query or a fragment:
// they would stand in the job file and in messages.
Result<std::string> checked_url(const std::string& url);

}  // namespace lockstep::source
