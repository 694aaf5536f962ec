#include "deploy/cli/job_documents.h"

#include <charconv>
#include <cstdint>

#include "deploy/cli/job_model_file.h"

namespace lockstep {
namespace {

bool is_token_number(const std::string& text) {
  uint64_t token = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), token);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

Status check_documents(const JobValues& values, const wire::JobSpec& job) {
  const auto say = [&](std::string_view key) { return told(values, key, job); };
  const auto usage = [](const std::string& message) { return Status(Code::kUsage, message); };
  const wire::DataSpec& data = job.data();
  if (data.documents().empty() || data.documents() == "stream") {
    if (data.document_end().empty()) return Status::ok();
    return usage(say("data.document_end") + " but " + say("data.documents") +
                 ": a stream is not cut where documents end; leave it out, or take pad or pack");
  }
  if (!takes_tokens(job))
    return usage(say("data.documents") + " but " + say("data.train.format") +
                 ": documents are of tokens or text; leave it out");
  if (data.documents() == "pack" && job.model().name() != "gpt2")
    return usage(say("data.documents") + " but " + say("model.name") +
                 ": only gpt2 is told where the documents of a sequence begin; take pad");
  if (data.document_end().empty() || is_token_number(data.document_end())) return Status::ok();
  return usage(say("data.document_end") +
               ": a token is a whole number, such as 50256, which ends GPT-2's documents");
}

}  // namespace lockstep
