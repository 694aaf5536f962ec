#include "comm/http/content_range.h"

#include <charconv>

namespace lockstep::http {
namespace {

bool take_number(std::string_view& text, uint64_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

}  // namespace

std::optional<ContentRange> parse_content_range(std::string_view text) {
  ContentRange range;
  const bool is_one = take(text, "bytes ") && take_number(text, range.first) && take(text, "-") &&
                      take_number(text, range.last) && take(text, "/") &&
                      take_number(text, range.total) && text.empty();
  return is_one ? std::optional(range) : std::nullopt;
}

std::optional<uint64_t> whole_bytes(const HttpAnswer& answer) {
  if (answer.status == 200 && answer.content_length >= 0)
    return static_cast<uint64_t>(answer.content_length);
  std::string_view text = answer.content_range;
  uint64_t bytes = 0;
  if (take(text, "bytes */") && take_number(text, bytes) && text.empty()) return bytes;  // of 416
  const auto range = parse_content_range(answer.content_range);
  if (answer.status != 206 || !range) return std::nullopt;
  return range->total;
}

}  // namespace lockstep::http
