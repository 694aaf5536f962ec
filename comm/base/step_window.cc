#include "comm/base/step_window.h"

#include <charconv>

namespace lockstep {
namespace {

bool read_step(std::string_view text, Step* step) {
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, *step);
  return read.ec == std::errc() && read.ptr == end;
}

}  // namespace

Result<StepWindow> parse_step_window(std::string_view text) {
  StepWindow window;
  if (text.empty()) return window;
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos || !read_step(text.substr(0, colon), &window.first) ||
      !read_step(text.substr(colon + 1), &window.end) || window.first >= window.end) {
    return Status(Code::kUsage,
                  "write two step numbers, the second one larger, as in 10:20 for steps 11 to 20");
  }
  return window;
}

}  // namespace lockstep
