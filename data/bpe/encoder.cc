#include "data/bpe/encoder.h"

#include <queue>
#include <tuple>
#include <utility>

#include "comm/base/check.h"
#include "data/bpe/pre_tokens.h"

namespace lockstep::data {
namespace {

constexpr uint32_t kNone = ~uint32_t{0};
constexpr size_t kKnownPieces = 65'536;  // each of at most so many bytes
constexpr size_t kKnownBytes = 48;

// Two neighbours that may become one: the lowest rank first, then the leftmost.
struct Candidate {
  uint32_t rank;
  uint32_t place;  // of the left one
  uint32_t token;  // that they become
  bool operator>(const Candidate& other) const {
    return std::tie(rank, place) > std::tie(other.rank, other.place);
  }
};

}  // namespace

BpeEncoder::BpeEncoder(const BpeVocabulary& vocabulary) : vocabulary_(vocabulary) {
  for (const BpeVocabulary::AddedToken& token : vocabulary.added_tokens()) {
    auto& by_byte = added_[token.is_normalized ? 1 : 0];
    by_byte.resize(256);
    by_byte[static_cast<uint8_t>(token.text[0])].push_back(&token);
  }
}

const BpeVocabulary::AddedToken* BpeEncoder::added_at(std::string_view text, size_t kind) const {
  for (const auto* token : added_[kind][static_cast<uint8_t>(text[0])])
    if (text.starts_with(token->text)) return token;
  return nullptr;
}

void BpeEncoder::encode(std::string_view text, std::vector<uint32_t>& out) {
  encode_between(text, 0, out);
}

void BpeEncoder::encode_between(std::string_view text, size_t kind, std::vector<uint32_t>& out) {
  if (kind == 2) return encode_plain(text, out);
  size_t begin = 0;
  if (!added_[kind].empty()) {
    for (size_t at = 0; at < text.size();) {
      const auto* token = added_at(text.substr(at), kind);
      if (token == nullptr) {
        ++at;
        continue;
      }
      encode_between(text.substr(begin, at - begin), kind + 1, out);
      out.push_back(token->token);
      at += token->text.size();
      begin = at;
    }
  }
  encode_between(text.substr(begin), kind + 1, out);
}

void BpeEncoder::encode_plain(std::string_view text, std::vector<uint32_t>& out) {
  while (!text.empty()) {
    const size_t bytes = pre_token_bytes(text);
    encode_piece(text.substr(0, bytes), out);
    text.remove_prefix(bytes);
  }
}

void BpeEncoder::encode_piece(std::string_view piece, std::vector<uint32_t>& out) {
  if (piece.size() == 1) {
    out.push_back(vocabulary_.token_of_byte(static_cast<uint8_t>(piece[0])));
    return;
  }
  if (piece.size() > kKnownBytes) return merge(piece, out);
  key_.assign(piece);
  auto found = known_.find(key_);
  if (found == known_.end()) {
    if (known_.size() >= kKnownPieces) known_.clear();
    std::vector<uint32_t> tokens;
    merge(piece, tokens);
    found = known_.emplace(key_, std::move(tokens)).first;
  }
  out.insert(out.end(), found->second.begin(), found->second.end());
}

void BpeEncoder::merge(std::string_view piece, std::vector<uint32_t>& out) {
  LOCKSTEP_CHECK(piece.size() < kNone, "places in a piece of text fit 32 bits");
  const auto count = static_cast<uint32_t>(piece.size());
  symbols_.resize(count);
  for (uint32_t i = 0; i < count; ++i)
    symbols_[i] = {vocabulary_.token_of_byte(static_cast<uint8_t>(piece[i])),
                   i == 0 ? kNone : i - 1, i + 1 == count ? kNone : i + 1, false};
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  const auto consider = [&](uint32_t place) {
    if (place == kNone || symbols_[place].next == kNone) return;
    const auto* merged =
        vocabulary_.merge_of(symbols_[place].token, symbols_[symbols_[place].next].token);
    if (merged != nullptr) queue.push({merged->rank, place, merged->token});
  };
  for (uint32_t i = 0; i + 1 < count; ++i) consider(i);
  while (!queue.empty()) {
    const Candidate top = queue.top();
    queue.pop();
    Symbol& left = symbols_[top.place];
    if (left.is_gone || left.next == kNone) continue;
    Symbol& right = symbols_[left.next];
    // Skips a candidate if one of its symbols has changed since.
    const auto* merged = vocabulary_.merge_of(left.token, right.token);
    if (merged == nullptr || merged->token != top.token) continue;
    left.token = top.token;
    right.is_gone = true;
    left.next = right.next;
    if (left.next != kNone) symbols_[left.next].previous = top.place;
    consider(left.previous);
    consider(top.place);
  }
  for (uint32_t i = 0; i != kNone; i = symbols_[i].next) out.push_back(symbols_[i].token);
}

}  // namespace lockstep::data
