#include "data/formats/tokens/token_stream.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "data/base/file_errors.h"
#include "data/dataset/content_hash.h"

namespace lockstep::data {
namespace {

// `T`: as stored; the target is little-endian, as the files are; they need not be aligned.
template <typename T>
int64_t widen(const uint8_t* stored, uint64_t tokens, int64_t* out) {
  int64_t largest = 0;
  for (uint64_t i = 0; i < tokens; ++i) {
    T value;
    std::memcpy(&value, stored + i * sizeof(T), sizeof(T));
    out[i] = static_cast<int64_t>(std::min<uint64_t>(value, std::numeric_limits<int64_t>::max()));
    largest = std::max(largest, out[i]);
  }
  return largest;
}

int64_t widen(const uint8_t* stored, uint32_t token_bytes, uint64_t tokens, int64_t* out) {
  if (token_bytes == 1) return widen<uint8_t>(stored, tokens, out);
  if (token_bytes == 2) return widen<uint16_t>(stored, tokens, out);
  if (token_bytes == 4) return widen<uint32_t>(stored, tokens, out);
  return widen<uint64_t>(stored, tokens, out);
}

}  // namespace

void TokenStream::add_file(std::string path, MappedFile file) {
  paths_.push_back(std::move(path));
  files_.push_back(std::move(file));
  files_.back().remember_content();
}

void TokenStream::add_piece(uint64_t offset, uint64_t tokens) {
  if (tokens == 0) return;
  pieces_.push_back({files_.size() - 1, offset, tokens, tokens_});
  tokens_ += tokens;
}

std::span<const uint8_t> TokenStream::piece(size_t i) const {
  return {at(pieces_[i]), pieces_[i].tokens * token_bytes_};
}

size_t TokenStream::piece_of(uint64_t token) const {
  const auto after = std::upper_bound(pieces_.begin(), pieces_.end(), token,
                                      [](uint64_t n, const Piece& p) { return n < p.first; });
  return static_cast<size_t>(after - pieces_.begin()) - 1;
}

uint64_t TokenStream::token(uint64_t i) const {
  uint64_t value = 0;  // little-endian, as the files are
  std::memcpy(&value, contiguous(i, 1), token_bytes_);
  return value;
}

const uint8_t* TokenStream::contiguous(uint64_t begin, uint64_t n) const {
  const Piece& piece = pieces_[piece_of(begin)];
  const uint64_t within = begin - piece.first;
  return n <= piece.tokens - within ? at(piece) + within * token_bytes_ : nullptr;
}

std::optional<FileExtent> TokenStream::extent(uint64_t begin, uint64_t n) const {
  const uint8_t* first = contiguous(begin, n);
  if (first == nullptr) return std::nullopt;
  return files_[pieces_[piece_of(begin)].file].extent(first, n * token_bytes_);
}

void TokenStream::copy(uint64_t begin, uint64_t n, uint8_t* out) const {
  for (size_t i = piece_of(begin); n > 0; ++i) {
    const Piece& piece = pieces_[i];
    const uint64_t within = begin - piece.first;
    const uint64_t here = std::min(n, piece.tokens - within);
    std::memcpy(out, at(piece) + within * token_bytes_, here * token_bytes_);
    out += here * token_bytes_;
    begin += here;
    n -= here;
  }
}

int64_t TokenStream::read(uint64_t begin, uint64_t n, int64_t* out) const {
  int64_t largest = 0;
  for (size_t i = piece_of(begin); n > 0; ++i) {
    const Piece& piece = pieces_[i];
    const uint64_t within = begin - piece.first;
    const uint64_t here = std::min(n, piece.tokens - within);
    const int64_t found = widen(at(piece) + within * token_bytes_, token_bytes_, here, out);
    largest = std::max(largest, found);
    out += here;
    begin += here;
    n -= here;
  }
  return largest;
}

std::string TokenStream::path_of(uint64_t token) const {
  return paths_[pieces_[piece_of(token)].file];
}

uint64_t TokenStream::offset_of(uint64_t token) const {
  const Piece& piece = pieces_[piece_of(token)];
  return piece.offset + (token - piece.first) * token_bytes_;
}

std::string TokenStream::place_of(uint64_t token) const {
  return place_text(path_of(token), offset_of(token));
}

void TokenStream::hash_content(Xxh3& hash) const {
  // Places in bytes may lie within a token.
  const auto add = [&](uint64_t offset, uint64_t bytes) {
    while (bytes > 0) {
      const Piece& piece = pieces_[piece_of(offset / token_bytes_)];
      const uint64_t within = offset - piece.first * token_bytes_;
      const uint64_t here = std::min(bytes, piece.tokens * token_bytes_ - within);
      hash.update(at(piece) + within, here);
      offset += here;
      bytes -= here;
    }
  };
  hash_sampled(bytes(), add, kWholeContentBytes);
}

Status TokenStream::unchanged() const {
  for (const MappedFile& file : files_) LOCKSTEP_RETURN_IF_ERROR(file.unchanged());
  return Status::ok();
}

Status TokenStream::unchanged(uint64_t begin, uint64_t n) const {
  const size_t first = pieces_[piece_of(begin)].file;
  const size_t last = pieces_[piece_of(begin + n - 1)].file;
  for (size_t i = first; i <= last; ++i) LOCKSTEP_RETURN_IF_ERROR(files_[i].unchanged());
  return Status::ok();
}

void TokenStream::will_need() const {
  for (const MappedFile& file : files_) file.will_need();
}

}  // namespace lockstep::data
