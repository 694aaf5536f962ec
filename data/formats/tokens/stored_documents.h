// The pieces of documents (documents.h) where they lie in token streams, read by their numbers.
// Data sets that are parts of one share it.
//
// Thread-safety: immutable; any thread and process.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/formats/tokens/documents.h"
#include "data/formats/tokens/token_stream.h"

namespace lockstep::data {

class StoredDocuments {
 public:
  // REQUIRES: streams is not empty; the pieces are of cut_documents() of them.
  StoredDocuments(std::vector<TokenStream> streams, DocumentPieces pieces);

  const std::vector<TokenStream>& streams() const { return streams_; }
  std::vector<std::string> files() const;
  const DocumentPieces& pieces() const { return pieces_; }

  // Of the documents with `chosen`, which has an entry for each, in the order of the files.
  std::vector<uint32_t> pieces_of(const std::vector<bool>& chosen) const;
  uint64_t documents_of(const std::vector<uint32_t>& rising_pieces) const;

  // The tokens of a piece, and those behind each; returns the largest of them.
  int64_t read(uint32_t piece, int64_t* input, int64_t* labels) const;
  std::string place_of(uint32_t piece) const;  // for messages
  // One look at a file of its own, however many of its pieces are asked for; of several the
  // piece's.
  Status unchanged(std::span<const uint32_t> pieces) const;

 private:
  bool begins_document(uint64_t piece) const;
  size_t stream_of(uint64_t token) const;

  std::vector<TokenStream> streams_;
  std::vector<uint64_t> first_tokens_;  // of each
  DocumentPieces pieces_;
};

}  // namespace lockstep::data
