#include "comm/rpc/knock.h"

#include <algorithm>
#include <cstring>

#include "comm/base/hash.h"
#include "comm/base/limits.h"

namespace lockstep::rpc {
namespace {

constexpr std::string_view kKnockMagic = "LSKNOCK1";
constexpr size_t kTimeAt = 8;
constexpr size_t kNonceAt = 16;
constexpr size_t kProofAt = 32;

std::string_view text_of(const Digest256& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

}  // namespace

std::string make_knock(const std::string& token, int64_t now_ms) {
  std::string knock(kKnockMagic);
  knock.append(reinterpret_cast<const char*>(&now_ms), sizeof now_ms);
  knock.append(random_bytes(kProofAt - kNonceAt));
  knock.append(text_of(hmac_sha256(token, knock)));
  return knock;
}

bool is_knock(std::string_view bytes) {
  return bytes.size() >= kKnockBytes && bytes.starts_with(kKnockMagic);
}

bool KnockBook::accept(std::string_view knock, int64_t now_ms) {
  if (!is_knock(knock)) return false;
  int64_t time_ms = 0;
  std::memcpy(&time_ms, knock.data() + kTimeAt, sizeof time_ms);
  if (time_ms < now_ms - limits::kKnockMs || time_ms > now_ms + limits::kKnockMs) return false;
  forget_before(now_ms - limits::kKnockMs);
  const std::string_view nonce = knock.substr(kNonceAt, kProofAt - kNonceAt);
  if (seen_.size() >= limits::kKnocksKept || seen_.contains(nonce)) return false;
  // Not Token::find(), which reads the file for a wrong proof: wrong ones may come in thousands.
  const std::vector<std::string> tokens = token_.accepted();
  const bool is_right = std::any_of(tokens.begin(), tokens.end(), [&](const std::string& token) {
    return equal_constant_time(text_of(hmac_sha256(token, knock.substr(0, kProofAt))),
                               knock.substr(kProofAt, kKnockBytes - kProofAt));
  });
  if (!is_right) return false;
  seen_.emplace(nonce);
  by_time_.emplace(time_ms, nonce);
  return true;
}

void KnockBook::forget_before(int64_t time_ms) {
  while (!by_time_.empty() && by_time_.begin()->first < time_ms) {
    seen_.erase(by_time_.begin()->second);
    by_time_.erase(by_time_.begin());
  }
}

}  // namespace lockstep::rpc
