// Any bytes as an HTTP answer, whole and in pieces: no crash, the same result, within the limit.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "comm/base/check.h"
#include "comm/http/http_answer_reader.h"

namespace {

constexpr size_t kLimitBytes = 1000;

struct Outcome {
  lockstep::Status status;
  bool is_done = false;
  lockstep::http::GetResult result;
};

Outcome read(std::string_view stream, size_t chunk) {
  lockstep::http::HttpAnswerReader answer(kLimitBytes);
  Outcome outcome;
  for (size_t at = 0; at < stream.size() && outcome.status.is_ok() && !answer.is_done();
       at += chunk)
    outcome.status = answer.take(stream.substr(at, chunk));
  if (outcome.status.is_ok() && !answer.is_done()) outcome.status = answer.end();
  outcome.is_done = outcome.status.is_ok() && answer.is_done();
  if (outcome.is_done) outcome.result = std::move(answer).result();
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view stream(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Outcome whole = read(stream, stream.size());
  const Outcome cut = read(stream, 1 + data[0]);
  // Only limits may be noticed at different moments; a result that both reach is the same.
  if (whole.is_done && cut.is_done) {
    LOCKSTEP_CHECK(whole.result.status == cut.result.status, "chunking changed the status");
    LOCKSTEP_CHECK(whole.result.body == cut.result.body, "chunking changed the body");
  }
  LOCKSTEP_CHECK(whole.result.body.size() <= kLimitBytes, "a body above the limit");
  return 0;
}
