#include "deploy/cli/script/script_block.h"

namespace lockstep {
namespace {

constexpr std::string_view kOpening = "# /// lockstep";
constexpr std::string_view kClosing = "# ///";

std::string_view without_end(std::string_view line) {
  const size_t last = line.find_last_not_of(" \t\r");
  return line.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

// "#///lockstep", which was meant to open a block.
bool is_near_opening(std::string_view line) {
  if (!line.starts_with('#')) return false;
  std::string letters(line);
  std::erase_if(letters, [](char c) { return c == ' ' || c == '\t' || c == '#'; });
  return letters == "///lockstep" || letters == "//lockstep" || letters == "////lockstep";
}

bool is_key_line(std::string_view yaml) {
  const size_t first = yaml.find_first_not_of(' ');
  return first != std::string_view::npos && yaml[first] != '#';
}

class BlockReader {
 public:
  explicit BlockReader(const std::string& name) : name_(name) {}

  Status line(std::string_view text) {
    ++number_;
    text = without_end(text);
    LOCKSTEP_RETURN_IF_ERROR(is_open_ ? inside(text) : outside(text));
    yaml_ += '\n';
    return Status::ok();
  }

  Result<std::string> take() {
    if (is_open_) return unclosed();
    return has_keys_ ? std::move(yaml_) : std::string();
  }

 private:
  Status outside(std::string_view text) {
    if (text != kOpening) {
      if (!is_near_opening(text)) return Status::ok();
      return at(number_, "write \"" + std::string(kOpening) +
                             "\" to open the block of job keys, with these blanks");
    }
    if (opened_ > 0)
      return at(number_, "a second block of job keys; the first is at line " +
                             std::to_string(opened_) + ": put all keys into one");
    opened_ = number_;
    is_open_ = true;
    return Status::ok();
  }

  Status inside(std::string_view text) {
    if (text == kClosing) {
      is_open_ = false;
      return Status::ok();
    }
    if (!text.starts_with('#')) return unclosed();
    text.remove_prefix(1);
    if (text.empty()) return Status::ok();
    if (text[0] != ' ')
      return at(number_, "a line in the block of job keys must begin with \"# \"");
    yaml_ += " ";  // for the '#', so that columns are the script's
    yaml_ += text;
    has_keys_ = has_keys_ || is_key_line(text);
    return Status::ok();
  }

  Status unclosed() const {
    return at(opened_, "the block of job keys is not closed; end it with a line \"" +
                           std::string(kClosing) + "\"");
  }

  Status at(size_t line, const std::string& what) const {
    return Status(Code::kUsage, name_ + ":" + std::to_string(line) + ": " + what);
  }

  const std::string& name_;
  std::string yaml_;
  size_t number_ = 0;  // of the line, from 1
  size_t opened_ = 0;  // the line of the block; 0: there was none
  bool is_open_ = false;
  bool has_keys_ = false;
};

}  // namespace

bool is_script_file(std::string_view path) {
  return path.ends_with(".py");
}

Result<std::string> script_block(std::string_view script, const std::string& name) {
  BlockReader reader(name);
  while (!script.empty()) {
    const size_t end = script.find('\n');
    LOCKSTEP_RETURN_IF_ERROR(reader.line(script.substr(0, end)));
    script.remove_prefix(end == std::string_view::npos ? script.size() : end + 1);
  }
  return reader.take();
}

}  // namespace lockstep
