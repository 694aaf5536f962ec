// Streams of tokens as a PackSource. A shard is a part of one stream; its file names the stream
// (kArrowStreamKey).
//
// If a stream says where its documents end, a row is a list: a document, or the part of a document
// that lies in a batch. Batches are cut by their size alone. The file lists the batches whose last
// document goes on (kArrowOpenKey). A document without a token before its end is an empty row.
//
// Thread-safety: as PackSource.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/formats/tokens/token_stream.h"
#include "data/pack/pack_source.h"

namespace lockstep::data {

class TokenSource final : public PackSource {
 public:
  TokenSource(std::vector<TokenStream> streams, uint64_t shard_bytes);

  std::string fingerprint() const override { return fingerprint_; }
  const char* unit() const override { return "tokens"; }
  ArrowSchema schema(const PackShard& shard) const override;
  Status read(const PackShard& shard, const GiveBatchFn& give) const override;

 private:
  std::vector<TokenStream> streams_;
  std::string fingerprint_;
};

}  // namespace lockstep::data
