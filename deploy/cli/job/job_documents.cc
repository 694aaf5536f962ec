#include "deploy/cli/job/job_documents.h"

#include <charconv>
#include <cstdint>

#include "comm/run/job/models/model_table.h"
#include "deploy/cli/job/job_model_file.h"
#include "deploy/cli/job/job_told.h"

namespace lockstep {
namespace {

bool is_token_number(const std::string& text) {
  uint64_t token = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), token);
  return error == std::errc() && end == text.data() + text.size();
}

// Only padded documents are numbered by their length.
Status check_lengths(const JobValues& values, const wire::JobSpec& job) {
  const auto say = [&](std::string_view key) { return told(values, key, job); };
  const wire::DataSpec& data = job.data();
  const bool is_by_length = data.shuffle() == "length";
  if (data.mix_size() > 0 && (is_by_length || data.length_classes() > 0))
    return {Code::kUsage, say(is_by_length ? "data.shuffle" : "data.length_classes") +
                              " but there is data.mix: samples of several data sets take turns, "
                              "whatever their length; leave one of the two out"};
  if (is_by_length && data.length_classes() > 0)
    return {Code::kUsage, say("data.shuffle") + " but " + say("data.length_classes") +
                              ": classes are shuffled sample by sample; leave one of the two out"};
  if (data.length_classes() > 0 && data.shuffle() == "block")
    return {Code::kUsage, say("data.shuffle") + " but " + say("data.length_classes") +
                              ": neighbouring samples differ in length; leave one of the two out"};
  if ((!is_by_length && data.length_classes() == 0) || data.documents() == "pad")
    return Status::ok();
  return {Code::kUsage, say(is_by_length ? "data.shuffle" : "data.length_classes") + " but " +
                            say("data.documents") +
                            ": only data.documents: pad makes samples of different lengths"};
}

}  // namespace

Status check_documents(const JobValues& values, const wire::JobSpec& job) {
  const auto say = [&](std::string_view key) { return told(values, key, job); };
  const auto usage = [](const std::string& message) { return Status(Code::kUsage, message); };
  const wire::DataSpec& data = job.data();
  LOCKSTEP_RETURN_IF_ERROR(check_lengths(values, job));
  if (data.documents().empty() || data.documents() == "stream") {
    if (data.document_end().empty()) return Status::ok();
    return usage(say("data.document_end") + " but " + say("data.documents") +
                 ": a stream is not cut where documents end; leave it out, or take pad or pack");
  }
  if (!takes_tokens(job))
    return usage(say("data.documents") + " but " + say("data.train.format") +
                 ": documents are of tokens or text; leave it out");
  const ModelRow* model = find_model(job.model().name());
  const bool tells_apart =
      model != nullptr && (model->tells_documents_apart || model->is_script);  // it may
  if (data.documents() == "pack" && !tells_apart)
    return usage(say("data.documents") + " but " + say("model.name") + ": only " +
                 models_of_packed_documents() +
                 " can tell the documents of a sequence apart; take pad");
  if (data.document_end().empty() || is_token_number(data.document_end())) return Status::ok();
  return usage(say("data.document_end") +
               ": a token is a whole number, such as 50256, which ends GPT-2's documents");
}

}  // namespace lockstep
