// Reads JSON from an untrusted source. JsonFields keeps the first error and goes on with empty
// values, so that a reader asks for everything and looks for the error once, at its end.
//
// Only sources include this, because nlohmann/json is large.
// Thread-safety: one thread for each object.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "comm/base/status.h"

namespace lockstep::exported {

// The only way from text to JSON here, also for texts inside of other JSON. kBadData with a
// sentence if `text` is not JSON, or beyond limits::kProgramJson*.
Result<nlohmann::json> parse_limited(std::string_view text);

class JsonFields {
 public:
  const Status& status() const { return status_; }
  bool is_ok() const { return status_.is_ok(); }
  void fail(Status status) {
    if (status_.is_ok()) status_ = std::move(status);
  }
  // `what` of the schema is not as PyTorch writes it.
  void malformed(const std::string& what);

  // A member, or null (JSON) if it is not there. `from` may be anything.
  const nlohmann::json& optional(const nlohmann::json& from, const char* key) const;

  const nlohmann::json& object(const nlohmann::json& from, const char* key);
  const nlohmann::json& list(const nlohmann::json& from, const char* key);
  std::string text(const nlohmann::json& from, const char* key);
  int64_t integer(const nlohmann::json& from, const char* key);
  bool boolean(const nlohmann::json& from, const char* key);

  std::string as_text(const nlohmann::json& value, const char* what);
  int64_t as_integer(const nlohmann::json& value, const char* what);
  double as_number(const nlohmann::json& value, const char* what);  // "Infinity", "NaN" too
  bool as_boolean(const nlohmann::json& value, const char* what);

  // The key of the only member of an object, such as {"as_int": 3}; "" if it is no such object.
  std::string kind(const nlohmann::json& tagged, const char* what);

 private:
  Status status_;
};

}  // namespace lockstep::exported
