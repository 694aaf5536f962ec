// Base64 with padding (RFC 4648, section 4).
//
// Thread-safety: pure function.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace lockstep {

std::string base64(std::span<const uint8_t> bytes);

}  // namespace lockstep
