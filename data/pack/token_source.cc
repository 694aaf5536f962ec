#include "data/pack/token_source.h"

#include <algorithm>
#include <span>
#include <utility>

#include "comm/base/hash.h"
#include "comm/base/limits.h"
#include "data/formats/tokens/arrow_tokens.h"

namespace lockstep::data {
namespace {

constexpr char kTokens[] = "tokens";

// The part of a stream that lies in one batch or shard.
struct TokenSpan {
  uint64_t begin = 0;
  uint64_t end = 0;
};

// The ends of documents within `span`. An end at its begin belongs to the tokens before, if any.
std::span<const uint64_t> ends_in(const TokenStream& stream, const TokenSpan& span) {
  const std::vector<uint64_t>& ends = *stream.document_ends();
  const auto first =
      span.begin == 0 ? ends.begin() : std::upper_bound(ends.begin(), ends.end(), span.begin);
  return {first, std::upper_bound(first, ends.end(), span.end)};
}

// Whether there are tokens after the last end.
bool has_rest(std::span<const uint64_t> ends, const TokenSpan& span) {
  return (ends.empty() ? span.begin : ends.back()) < span.end;
}

uint64_t rows_in(const TokenStream& stream, const TokenSpan& span) {
  if (!stream.document_ends()) return span.end - span.begin;
  const auto ends = ends_in(stream, span);
  return ends.size() + (has_rest(ends, span) ? 1 : 0);
}

std::vector<TokenSpan> batches_of(const TokenStream& stream, const PackShard& shard) {
  const uint64_t each = limits::kPackBatchBytes / stream.token_bytes();
  std::vector<TokenSpan> spans;
  for (uint64_t begin = shard.begin; begin < shard.end; begin += each)
    spans.push_back({begin, std::min(begin + each, shard.end)});
  return spans;
}

// kArrowOpenKey's value.
std::string open_batches(const TokenStream& stream, const PackShard& shard) {
  std::string text;
  const std::vector<TokenSpan> spans = batches_of(stream, shard);
  for (size_t i = 0; i < spans.size(); ++i) {
    if (spans[i].end == stream.tokens() || !has_rest(ends_in(stream, spans[i]), spans[i])) continue;
    text += (text.empty() ? "" : ",") + std::to_string(i);
  }
  return text;
}

// Offsets of the rows, which are as many as rows_in().
std::string offsets_of(const TokenStream& stream, const TokenSpan& span) {
  const auto ends = ends_in(stream, span);
  std::vector<int32_t> offsets{0};
  offsets.reserve(ends.size() + 2);
  for (const uint64_t end : ends) offsets.push_back(static_cast<int32_t>(end - span.begin));
  if (has_rest(ends, span)) offsets.push_back(static_cast<int32_t>(span.end - span.begin));
  return {reinterpret_cast<const char*>(offsets.data()), offsets.size() * sizeof(int32_t)};
}

PackBatch batch_of(const TokenStream& stream, const TokenSpan& span) {
  const uint64_t tokens = span.end - span.begin;
  std::string values(tokens * stream.token_bytes(), '\0');
  stream.copy(span.begin, tokens, reinterpret_cast<uint8_t*>(values.data()));
  if (!stream.document_ends()) return {tokens, tokens, {{tokens, 0}}, {{}, std::move(values)}};
  const uint64_t rows = rows_in(stream, span);
  return {rows,
          tokens,
          {{rows, 0}, {tokens, 0}},
          {{}, offsets_of(stream, span), {}, std::move(values)}};
}

void hash_documents(const TokenStream& stream, Xxh3& hash) {
  if (!stream.document_ends()) return;
  const std::vector<uint64_t>& ends = *stream.document_ends();
  hash.update("documents " + std::to_string(ends.size()) + "\n");
  hash.update(ends.data(), ends.size() * sizeof(uint64_t));
}

}  // namespace

TokenSource::TokenSource(std::vector<TokenStream> streams, uint64_t shard_bytes)
    : streams_(std::move(streams)) {
  Xxh3 hash;
  for (size_t i = 0; i < streams_.size(); ++i) {
    const TokenStream& stream = streams_[i];
    hash.update("tokens " + std::to_string(stream.tokens()) + " of " +
                std::to_string(stream.token_bytes()) + "\n");
    stream.hash_content(hash);
    hash_documents(stream, hash);
    for (PackShard shard : cut_evenly(stream.tokens(), stream.token_bytes(), shard_bytes)) {
      shard.stream = i;
      shard.rows = 0;
      for (const TokenSpan& span : batches_of(stream, shard)) shard.rows += rows_in(stream, span);
      shards_.push_back(shard);
    }
  }
  fingerprint_ = hash.hex();
}

ArrowSchema TokenSource::schema(const PackShard& shard) const {
  const TokenStream& stream = streams_[shard.stream];
  ArrowField number = arrow_int(kTokens, stream.token_bytes(), stream.is_signed());
  // No other data set has this key. Its files may come to lie in the same directory.
  ArrowSchema schema{{number},
                     {{kArrowStreamKey, fingerprint_ + "." + std::to_string(shard.stream)}}};
  if (!stream.document_ends()) return schema;
  number.name = "item";
  schema.fields = {arrow_list(kTokens, std::move(number))};
  const std::string open = open_batches(stream, shard);
  if (!open.empty()) schema.metadata[kArrowOpenKey] = open;
  return schema;
}

Status TokenSource::read(const PackShard& shard, const GiveBatchFn& give) const {
  const TokenStream& stream = streams_[shard.stream];
  for (const TokenSpan& span : batches_of(stream, shard)) {
    const PackBatch batch = batch_of(stream, span);
    LOCKSTEP_RETURN_IF_ERROR(stream.unchanged(span.begin, span.end - span.begin));
    LOCKSTEP_RETURN_IF_ERROR(give(batch));
  }
  return Status::ok();
}

}  // namespace lockstep::data
