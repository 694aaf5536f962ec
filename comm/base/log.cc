#include "comm/base/log.h"

#include <fmt/format.h>

#include "comm/base/text/utf8.h"

namespace lockstep {
namespace {

class NullLogger final : public Logger {
  void write(std::string_view, std::string_view, std::string_view, LogFields) override {}
};

}  // namespace

std::string json_escape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t n = utf8_character_bytes(text);
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
