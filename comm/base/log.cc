#include "comm/base/log.h"

#include <fmt/format.h>

namespace lockstep {
namespace {

class NullLogger final : public Logger {
  void write(std::string_view, std::string_view, std::string_view, LogFields) override {}
};

// Length of the valid UTF-8 sequence at the front of `text`, 0 if there is none.
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const size_t n = byte(0) < 0x80                      ? 1
                   : byte(0) >= 0xC2 && byte(0) < 0xE0 ? 2
                   : byte(0) >= 0xE0 && byte(0) < 0xF0 ? 3
                   : byte(0) >= 0xF0 && byte(0) < 0xF5 ? 4
                                                       : 0;
  if (n > text.size()) return 0;
  for (size_t i = 1; i < n; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  return n;
}

}  // namespace

std::string json_escape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t n = utf8_length(text);
    const char c = text[0];
    if (n == 0)
      out += "\xEF\xBF\xBD";
    else if (c == '"' || c == '\\')
      (out += '\\') += c;
    else if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04x}", c);
    else
      out.append(text.substr(0, n));
    text.remove_prefix(n == 0 ? 1 : n);
  }
  return out;
}

std::unique_ptr<Logger> null_logger() {
  return std::make_unique<NullLogger>();
}

}  // namespace lockstep
