// Reads the pieces of documents (documents.h) by their numbers, in place in token streams. Data
// sets that are parts of one data set share it.
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
  // REQUIRES: streams is not empty; `pieces` is cut_documents()'s result for the streams.
  StoredDocuments(std::vector<TokenStream> streams, DocumentPieces pieces);

  const std::vector<TokenStream>& streams() const { return streams_; }
  std::vector<std::string> files() const;
  const DocumentPieces& pieces() const { return pieces_; }

  // The pieces of the chosen documents. `chosen` has an entry for each document, in the order of
  // the files.
  std::vector<uint32_t> pieces_of(const std::vector<bool>& chosen) const;
  uint64_t documents_of(const std::vector<uint32_t>& rising_pieces) const;

  // Reads the tokens of a piece, and the label of each: the next token. Returns the largest token.
  int64_t read(uint32_t piece, int64_t* input, int64_t* labels) const;
  std::string place_of(uint32_t piece) const;  // for messages
  // Looks at the file of a one-file stream once, however many of its pieces are asked for. In a
  // stream of several files it looks at the files of each piece.
  Status unchanged(std::span<const uint32_t> pieces) const;

 private:
  bool begins_document(uint64_t piece) const;
  size_t stream_of(uint64_t token) const;

  std::vector<TokenStream> streams_;
  std::vector<uint64_t> first_tokens_;  // of each stream
  DocumentPieces pieces_;
};

}  // namespace lockstep::data
