// A coordinator proves over plain HTTP that it belongs to this run, because a port that a
// coordinator has left may be another program's by now.
//
//   GET /api/v1/proof?nonce=HEX   {"run": ..., "proof": HMAC-SHA256(token, "lockstep http" nonce)}
//
// Beyond loopback certificates do the same.
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "comm/base/hash.h"

namespace lockstep::http {

inline constexpr char kProofPath[] = "/api/v1/proof";
inline constexpr std::string_view kNonceKey = "nonce=";
inline constexpr size_t kNonceDigits = 32;

// Hex digits. `token`: as in RUN_DIR/token.
inline std::string proof_of_token(std::string_view token, std::string_view nonce) {
  const Digest256 digest = hmac_sha256(token, "lockstep http" + std::string(nonce));
  return to_hex(digest);
}

}  // namespace lockstep::http
