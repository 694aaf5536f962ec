// Streams of tokens as what is packed. A shard is a part of one stream, and its file says of which
// (kArrowStreamKey). Where a stream says where its documents end, a row is a list, a document or
// what of one lies in a batch: of the batches, which are cut by their size alone, the file says in
// which the last document goes on (kArrowOpenKey). What has no token before its end is a row
// without one.
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
