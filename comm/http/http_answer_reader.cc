#include "comm/http/http_answer_reader.h"

#include <strings.h>

#include <charconv>

#include "comm/base/limits.h"

namespace lockstep::http {
namespace {

Status no_http() {
  return Status(Code::kRefused, "the program at that address does not speak HTTP");
}

template <typename T>
bool parse_number(std::string_view text, T* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool is_content_length(std::string_view name) {
  constexpr std::string_view kName = "content-length";
  return name.size() == kName.size() && ::strncasecmp(name.data(), kName.data(), kName.size()) == 0;
}

}  // namespace

Status HttpAnswerReader::take(std::string_view bytes) {
  if (!has_header_) {
    header_ += bytes;
    const size_t end = header_.find("\r\n\r\n");
    if (end == std::string::npos)
      return header_.size() <= limits::kHttpHeaderBytes ? Status::ok() : no_http();
    has_header_ = true;
    LOCKSTEP_RETURN_IF_ERROR(read_header(std::string_view(header_).substr(0, end)));
    result_.body = header_.substr(end + 4);
  } else {
    result_.body += bytes;
  }
  if (result_.body.size() > limit_bytes_)
    return Status(Code::kRefused, "the answer is larger than the limit of " +
                                      std::to_string(limit_bytes_) + " bytes");
  finish_if_whole();
  return Status::ok();
}

void HttpAnswerReader::finish_if_whole() {
  if (!content_bytes_ || result_.body.size() < *content_bytes_) return;
  result_.body.resize(*content_bytes_);
  is_done_ = true;
}

Status HttpAnswerReader::end() {
  if (!has_header_ || content_bytes_)
    return Status(Code::kUnavailable, "the connection was closed before the whole answer came");
  is_done_ = true;
  return Status::ok();
}

Status HttpAnswerReader::read_header(std::string_view header) {
  std::string_view line = header.substr(0, header.find("\r\n"));
  if (line.substr(0, 7) != "HTTP/1." || line.size() < 12) return no_http();
  if (!parse_number(line.substr(9, 3), &result_.status)) return no_http();
  while (line.size() < header.size()) {
    header.remove_prefix(line.size() + 2);
    line = header.substr(0, header.find("\r\n"));
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || !is_content_length(line.substr(0, colon))) continue;
    size_t bytes = 0;
    if (!parse_number(trim(line.substr(colon + 1)), &bytes)) return no_http();
    content_bytes_ = bytes;
  }
  return Status::ok();
}

}  // namespace lockstep::http
