// Any bytes as a checkpoint manifest, also with a correct self hash: no crash, and an accepted
// manifest is the same after another round.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "comm/base/check.h"
#include "comm/base/hash.h"
#include "comm/run/checkpoint/manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)lockstep::manifest_from_json(text);
  auto json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded() || !json.is_object()) return 0;
  json.erase("self_sha256");
  const std::string body = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  json["self_sha256"] = lockstep::to_hex(lockstep::sha256(body));
  const auto manifest = lockstep::manifest_from_json(json.dump());
  if (!manifest.is_ok()) return 0;
  const std::string again = lockstep::manifest_to_json(*manifest);
  const auto second = lockstep::manifest_from_json(again);
  LOCKSTEP_CHECK(second.is_ok(), "what we write we can read");
  LOCKSTEP_CHECK(lockstep::manifest_to_json(*second) == again, "and it does not change");
  return 0;
}
