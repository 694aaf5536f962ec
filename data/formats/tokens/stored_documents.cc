#include "data/formats/tokens/stored_documents.h"

#include <algorithm>
#include <utility>

#include "comm/base/check.h"

namespace lockstep::data {

StoredDocuments::StoredDocuments(std::vector<TokenStream> streams, DocumentPieces pieces)
    : streams_(std::move(streams)), pieces_(std::move(pieces)) {
  uint64_t first = 0;
  for (const TokenStream& stream : streams_) {
    first_tokens_.push_back(first);
    first += stream.tokens();
  }
}

std::vector<std::string> StoredDocuments::files() const {
  std::vector<std::string> files;
  for (const TokenStream& stream : streams_)
    files.insert(files.end(), stream.paths().begin(), stream.paths().end());
  return files;
}

// A piece that continues a document begins with the last label of the piece before. A document
// begins after that label.
bool StoredDocuments::begins_document(uint64_t piece) const {
  return piece == 0 ||
         pieces_.begins[piece] != pieces_.begins[piece - 1] + pieces_.lengths[piece - 1];
}

std::vector<uint32_t> StoredDocuments::pieces_of(const std::vector<bool>& chosen) const {
  LOCKSTEP_CHECK(chosen.size() == pieces_.documents, "a choice for every document");
  std::vector<uint32_t> out;
  uint64_t begun = 0;
  for (uint32_t piece = 0; piece < pieces_.begins.size(); ++piece) {
    if (begins_document(piece)) ++begun;
    if (chosen[begun - 1]) out.push_back(piece);
  }
  out.shrink_to_fit();
  return out;
}

uint64_t StoredDocuments::documents_of(const std::vector<uint32_t>& rising_pieces) const {
  return static_cast<uint64_t>(
      std::count_if(rising_pieces.begin(), rising_pieces.end(),
                    [this](uint32_t piece) { return begins_document(piece); }));
}

int64_t StoredDocuments::read(uint32_t piece, int64_t* input, int64_t* labels) const {
  const size_t s = stream_of(pieces_.begins[piece]);
  const uint64_t begin = pieces_.begins[piece] - first_tokens_[s];
  const uint32_t length = pieces_.lengths[piece];
  const int64_t largest = streams_[s].read(begin, length, input);
  std::copy(input + 1, input + length, labels);
  return std::max(largest, streams_[s].read(begin + length, 1, labels + length - 1));
}

std::string StoredDocuments::place_of(uint32_t piece) const {
  const size_t s = stream_of(pieces_.begins[piece]);
  return streams_[s].place_of(pieces_.begins[piece] - first_tokens_[s]);
}

Status StoredDocuments::unchanged(std::span<const uint32_t> pieces) const {
  if (streams_.size() == 1 && streams_[0].paths().size() == 1) return streams_[0].unchanged();
  std::vector<bool> seen(streams_.size());
  for (const uint32_t piece : pieces) {
    const size_t s = stream_of(pieces_.begins[piece]);
    if (streams_[s].paths().size() == 1 && seen[s]) continue;
    seen[s] = true;
    LOCKSTEP_RETURN_IF_ERROR(streams_[s].unchanged(pieces_.begins[piece] - first_tokens_[s],
                                                   uint64_t{pieces_.lengths[piece]} + 1));
  }
  return Status::ok();
}

size_t StoredDocuments::stream_of(uint64_t token) const {
  const auto after = std::upper_bound(first_tokens_.begin(), first_tokens_.end(), token);
  return static_cast<size_t>(after - first_tokens_.begin()) - 1;
}

}  // namespace lockstep::data
