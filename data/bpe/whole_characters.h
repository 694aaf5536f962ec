// Cuts a stream of bytes into whole characters of UTF-8, for text that is shown while it is made: a
// character may lie in several tokens. No byte is lost or changed.
//
// Thread-safety: one thread.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace lockstep::data {

class WholeCharacters {
 public:
  // Returns the bytes that are ready. Bytes that can never be UTF-8 are ready at once, as they are.
  std::string add(std::string_view bytes);
  // The rest, at the end.
  std::string finish() { return std::move(kept_); }

 private:
  std::string kept_;
};

}  // namespace lockstep::data
