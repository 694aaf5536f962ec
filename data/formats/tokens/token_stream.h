// Tokens that follow each other without a gap. They lie in one range of a file, or in pieces of
// several files. Pieces matter for reading only: the content of a stream does not depend on its
// pieces.
//
// Thread-safety: immutable once all files are added, except for forget_documents(); any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "comm/base/hash.h"
#include "comm/base/status.h"
#include "data/files/mapped_file.h"

namespace lockstep::data {

class TokenStream {
 public:
  TokenStream(uint32_t token_bytes, bool is_signed)
      : token_bytes_(token_bytes), is_signed_(is_signed) {}

  void add_file(std::string path, MappedFile file);
  // A piece of the file added last. REQUIRES: the piece lies within the file.
  void add_piece(uint64_t offset, uint64_t tokens);

  // For a stream whose files say where documents end: call begin_documents() once, then
  // end_document() for each end, rising. The end of the stream needs no call. REQUIRES for
  // end_document(): begin_documents() was called.
  void begin_documents() { document_ends_.emplace(); }
  void end_document(uint64_t token) { document_ends_->push_back(token); }
  void forget_documents() { document_ends_.reset(); }
  const std::optional<std::vector<uint64_t>>& document_ends() const { return document_ends_; }

  // The column of the files that holds the tokens; empty: they have none.
  void set_column(std::string name) { column_ = std::move(name); }
  const std::string& column() const { return column_; }

  uint32_t token_bytes() const { return token_bytes_; }
  bool is_signed() const { return is_signed_; }  // as the files' type says; for messages
  uint64_t tokens() const { return tokens_; }
  uint64_t bytes() const { return tokens_ * token_bytes_; }
  const std::vector<std::string>& paths() const { return paths_; }  // not empty

  // The pieces, and the tokens of each.
  size_t pieces() const { return pieces_.size(); }
  std::span<const uint8_t> piece(size_t i) const;
  uint64_t first_of_piece(size_t i) const { return pieces_[i].first; }

  // The token as stored. A negative signed token becomes a large number. REQUIRES: i < tokens().
  uint64_t token(uint64_t i) const;

  // Where tokens [begin, begin + n) lie; null if they lie in several pieces. REQUIRES: the tokens
  // are in the stream; n > 0.
  const uint8_t* contiguous(uint64_t begin, uint64_t n) const;
  // The same as a place in a file; empty if contiguous() is null. REQUIRES: as above.
  std::optional<FileExtent> extent(uint64_t begin, uint64_t n) const;
  // REQUIRES: as above.
  void copy(uint64_t begin, uint64_t n, uint8_t* out) const;

  // The tokens as numbers. An 8-byte token beyond int64 becomes the largest int64, which no
  // vocabulary has. Returns the largest token. REQUIRES: as above.
  int64_t read(uint64_t begin, uint64_t n, int64_t* out) const;

  // "FILE at byte N", for messages.
  std::string place_of(uint64_t token) const;
  std::string path_of(uint64_t token) const;
  uint64_t offset_of(uint64_t token) const;

  // Hashes the content as records.h does for content of this length.
  void hash_content(Xxh3& hash) const;

  // Looks at all files, or at the files with tokens [begin, begin + n).
  Status unchanged() const;
  Status unchanged(uint64_t begin, uint64_t n) const;

  void will_need() const;

 private:
  struct Piece {
    size_t file = 0;
    uint64_t offset = 0;  // in the file
    uint64_t tokens = 0;
    uint64_t first = 0;  // the piece's first token in the stream
  };
  size_t piece_of(uint64_t token) const;
  const uint8_t* at(const Piece& piece) const {
    return files_[piece.file].bytes().data() + piece.offset;
  }

  uint32_t token_bytes_;
  bool is_signed_;
  uint64_t tokens_ = 0;
  std::string column_;
  std::vector<std::string> paths_;
  std::vector<MappedFile> files_;
  std::vector<Piece> pieces_;  // none is empty
  std::optional<std::vector<uint64_t>> document_ends_;
};

}  // namespace lockstep::data
