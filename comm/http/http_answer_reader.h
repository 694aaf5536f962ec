// Reads an HTTP/1 answer as it arrives, for http_call. Internal; a class of its own for the fuzzer.
//
// Thread-safety: one thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "comm/base/status.h"
#include "comm/http/get_result.h"

namespace lockstep::http {

class HttpAnswerReader {
 public:
  explicit HttpAnswerReader(size_t limit_bytes) : limit_bytes_(limit_bytes) {}

  // kRefused if the bytes are no HTTP or exceed the limit. Holds at most the limit and one chunk.
  Status take(std::string_view bytes);
  // The stream ended.
  Status end();
  bool is_done() const { return is_done_; }
  // REQUIRES: is_done().
  GetResult result() && { return std::move(result_); }

 private:
  Status read_header(std::string_view header);
  void finish_if_whole();

  size_t limit_bytes_;
  std::string header_;
  bool has_header_ = false;
  bool is_done_ = false;
  std::optional<size_t> content_bytes_;  // as the header announces
  GetResult result_;
};

}  // namespace lockstep::http
