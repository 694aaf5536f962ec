// Moments that others write down.
//
// Thread-safety: pure function.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep {

// As in "Tue, 01 Dec 2026 13:41:49 GMT" (RFC 9110, 5.6.7).
inline constexpr char kHttpDate[] = "%a, %d %b %Y %H:%M:%S GMT";

// Seconds since 1970 of a moment in UTC that strptime() reads by `form`; nothing unless all of
// `text` has that form.
std::optional<int64_t> parse_moment(const std::string& text, const char* form);

}  // namespace lockstep
