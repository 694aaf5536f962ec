#include "deploy/cli/job/job_tokenizer.h"

#include "comm/run/job/data_formats.h"
#include "data/bpe/vocabulary.h"
#include "data/source/url.h"
#include "deploy/cli/job/job_told.h"

namespace lockstep {

Status resolve_tokenizer(const JobContext& context, wire::JobSpec& job) {
  wire::DataSpec& data = *job.mutable_data();
  if (data.tokenizer().empty()) return Status::ok();
  if (source::is_url(data.tokenizer()))
    return {Code::kUsage, "data.tokenizer is " + data.tokenizer() +
                              ", but Lockstep reads a vocabulary only from a path; copy it to a "
                              "directory that every machine sees"};
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string found, context.hash_tokenizer(data.tokenizer()));
  if (data.tokenizer_sha256().empty()) data.set_tokenizer_sha256(found);
  return data::check_vocabulary_hash(data.tokenizer(), data.tokenizer_sha256(), found);
}

Status check_tokenizer(const JobValues& values, const wire::JobSpec& job) {
  const auto say = [&](std::string_view key) { return told(values, key, job); };
  const wire::DataSpec& data = job.data();
  if (data.tokenizer().empty()) {
    if (data.tokenizer_sha256().empty()) return Status::ok();
    return {Code::kUsage, say("data.tokenizer_sha256") + " but " + say("data.tokenizer") +
                              ": name the vocabulary with this hash"};
  }
  const auto check = [&](const std::string& key, const auto& set) {
    if (set.path().empty() || is_text_format(set.format())) return Status::ok();
    return Status(Code::kUsage, say("data.tokenizer") + " but " + say(key) +
                                    ": a tokenizer is for text; leave it out, or name text");
  };
  LOCKSTEP_RETURN_IF_ERROR(check("data.train.format", data.train()));
  for (int i = 0; i < data.mix_size(); ++i)
    LOCKSTEP_RETURN_IF_ERROR(check("data.mix." + std::to_string(i) + ".format", data.mix(i)));
  return check("data.eval.format", data.eval());
}

}  // namespace lockstep
