// A caller shows a knock before TLS begins, so that the door (tls_door.h) knows whom to serve
// first: a handshake costs a millisecond of arithmetic, and to check a knock costs a microsecond.
//
//     knock = magic, time, nonce, HMAC-SHA256(token, magic, time, nonce)     64 bytes
//
// A knock opens nothing: TLS and the proof of the token follow as they do without it. The door
// serves callers with a right knock first. After them come callers without a knock, with a wrong
// one, with a clock that is more than kKnockMs away, or with a knock that was shown before.
//
// Thread-safety: one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "comm/tls/run_token.h"

namespace lockstep::rpc {

inline constexpr size_t kKnockBytes = 64;

// `now_ms`: wall clock.
std::string make_knock(const std::string& token, int64_t now_ms);

// True if the bytes begin as a knock does, and as nothing of TLS does.
bool is_knock(std::string_view bytes);

class KnockBook {
 public:
  explicit KnockBook(Token token) : token_(std::move(token)) {}

  // True once for each knock that a holder of the token made just now.
  bool accept(std::string_view knock, int64_t now_ms);

 private:
  void forget_before(int64_t time_ms);

  const Token token_;
  std::set<std::string, std::less<>> seen_;      // nonces
  std::multimap<int64_t, std::string> by_time_;  // the same
};

}  // namespace lockstep::rpc
