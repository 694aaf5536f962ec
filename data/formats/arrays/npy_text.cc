#include "data/formats/arrays/npy_text.h"

#include <limits>

#include "comm/base/limits.h"

namespace lockstep::data {
namespace {

constexpr size_t kStringBytes = 32;

// Reads from the front; a failure is remembered, and after it nothing is read.
class NpyTextParser {
 public:
  explicit NpyTextParser(std::string_view text) : text_(text) {}

  Result<NpyText> parse() {
    expect('{');
    while (status_.is_ok() && !said_.is_structured && peek() != '}') {
      entry();
      if (!said_.is_structured && peek() != '}') expect(',');
    }
    if (!said_.is_structured) finish();
    if (!status_.is_ok()) return status_;
    return said_;
  }

 private:
  void fail(const std::string& what) {
    if (status_.is_ok())
      status_ = Status(Code::kBadData, "has a damaged header: " + what + " at offset " +
                                           std::to_string(at_) + " of its text");
  }

  // The next byte that is no blank; 0 at the end and after a failure.
  char peek() {
    if (!status_.is_ok()) return 0;
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  void expect(char c) {
    if (peek() == c && c != 0)
      ++at_;
    else
      fail(std::string("no '") + c + "'");
  }

  void entry() {
    const std::string key = quoted();
    expect(':');
    if (!status_.is_ok()) return;
    if (key == "descr" && first(has_descr_))
      descr();
    else if (key == "fortran_order" && first(has_order_))
      said_.is_fortran_order = boolean();
    else if (key == "shape" && first(has_shape_))
      shape();
    else
      fail("an unknown or repeated key");
  }

  static bool first(bool& seen) {
    const bool is_first = !seen;
    seen = true;
    return is_first;
  }

  std::string quoted() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') {
      fail("not a string");
      return "";
    }
    ++at_;
    std::string out;
    while (at_ < text_.size() && text_[at_] != quote) {
      const char c = text_[at_++];
      if (c < ' ' || c > '~' || c == '\\' || out.size() == kStringBytes) {
        fail("a string that NumPy does not write");
        return "";
      }
      out += c;
    }
    expect(quote);
    return out;
  }

  void descr() {
    said_.is_structured = peek() == '[';
    if (!said_.is_structured) said_.descr = quoted();
  }

  bool boolean() {
    (void)peek();
    for (const std::string_view word : {"True", "False"}) {
      if (text_.substr(at_, word.size()) != word) continue;
      at_ += word.size();
      return word == "True";
    }
    fail("neither True nor False");
    return false;
  }

  void shape() {
    expect('(');
    while (status_.is_ok() && peek() != ')') {
      said_.shape.push_back(number());
      if (said_.shape.size() > limits::kNpyDims) fail("too many dimensions");
      if (peek() != ')') expect(',');
    }
    expect(')');
  }

  uint64_t number() {
    const char front = peek();
    if (front < '0' || front > '9') fail("not a number");
    uint64_t value = 0;
    while (status_.is_ok() && at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
      const auto digit = static_cast<uint64_t>(text_[at_++] - '0');
      if (value > (std::numeric_limits<uint64_t>::max() - digit) / 10) fail("too large a number");
      value = 10 * value + digit;
    }
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // Python 2 wrote its long numbers so
    return value;
  }

  void finish() {
    expect('}');
    if (!has_descr_ || !has_order_ || !has_shape_) fail("descr, fortran_order or shape missing");
    (void)peek();
    if (at_ != text_.size()) fail("text after the dictionary");
  }

  std::string_view text_;
  size_t at_ = 0;
  Status status_;
  NpyText said_;
  bool has_descr_ = false;
  bool has_order_ = false;
  bool has_shape_ = false;
};

}  // namespace

Result<NpyText> parse_npy_text(std::string_view text) {
  return NpyTextParser(text).parse();
}

}  // namespace lockstep::data
