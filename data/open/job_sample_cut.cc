#include "data/open/job_sample_cut.h"

#include <charconv>

#include "comm/base/byte_units.h"
#include "comm/run/job/job.pb.h"
#include "comm/run/job/loss_kind.h"
#include "data/transform/transform_list.h"

namespace lockstep::data {

std::string cache_directory(const wire::DataSpec& data, const std::string& run_dir) {
  return data.cache_dir().empty() ? run_dir + "/cache" : data.cache_dir();
}

namespace {

// 0 and empty: a run that began before these keys existed.
source::CacheOptions cache_options(const wire::CacheSpec& spec) {
  source::CacheOptions options;
  options.covers_paths = spec.tier() == "all";
  if (spec.policy() == "lru") options.policy = source::CachePolicy::kLru;
  if (spec.policy() == "fifo") options.policy = source::CachePolicy::kFifo;
  options.limit_bytes = static_cast<uint64_t>(spec.limit_gb() * 1e9);
  if (spec.chunk_kb() == 0) return options;
  options.memory_bytes = spec.memory_mb() * kMib;
  options.chunk_bytes = spec.chunk_kb() * kKib;
  options.requests = spec.requests();
  options.stall_s = spec.stall_s();
  options.attempts = spec.attempts();
  return options;
}

Documents documents_of(const wire::DataSpec& spec) {
  if (spec.documents() == "pad") return Documents::kPad;
  return spec.documents() == "pack" ? Documents::kPack : Documents::kStream;
}

// Reading the job has refused any text that is no number.
std::optional<uint64_t> document_end_of(const wire::DataSpec& spec) {
  uint64_t token = 0;
  const std::string& text = spec.document_end();
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), token);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return token;
}

}  // namespace

ColumnNames column_names(const wire::DataSpec& data) {
  return {.input = data.input(),
          .label = data.label(),
          .inputs = {data.inputs().begin(), data.inputs().end()},
          .targets = {data.targets().begin(), data.targets().end()},
          .weight = data.weight()};
}

namespace {

ColumnNames columns_of(const wire::JobSpec& job) {
  ColumnNames columns = column_names(job.data());
  columns.are_numbers = loss_row(loss_kind(job.train())).compares_numbers;
  return columns;
}

}  // namespace

SampleCut sample_cut(const wire::JobSpec& job) {
  const auto& words = job.data().transforms();
  // Transforms that cannot be parsed are reported where they are used (sample_reader.h).
  const auto transforms = parse_transforms({words.begin(), words.end()});
  return {job.model().block(),
          job.model().vocab(),
          transforms.is_ok() ? transforms->frame : ImageFrame(),
          cache_options(job.data().cache()),
          job.data().tokenizer(),
          job.data().tokenizer_sha256(),
          documents_of(job.data()),
          document_end_of(job.data()),
          job.data().length_classes() > 0 || job.data().shuffle() == "length",
          columns_of(job),
          nullptr};
}

}  // namespace lockstep::data
