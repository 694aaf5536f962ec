#include "data/formats/tokens/documents.h"

#include <algorithm>
#include <utility>

#include "comm/base/limits.h"
#include "data/formats/tokens/document_ends.h"

namespace lockstep::data {
namespace {

class PieceList {
 public:
  explicit PieceList(uint32_t block) : block_(block) {}

  // Adds a document. Returns whether there was room for it.
  bool add(uint64_t begin, uint64_t end) {
    if (end - begin < 2) {
      ++out_.too_short;
      return true;
    }
    ++out_.documents;
    for (uint64_t left = end - begin - 1; left > 0; begin += block_) {
      const uint64_t here = std::min<uint64_t>(left, block_);
      if (out_.begins.size() == limits::kDocumentPieces) return false;
      out_.begins.push_back(begin);
      out_.lengths.push_back(static_cast<uint32_t>(here));
      left -= here;
    }
    return true;
  }
  DocumentPieces take() {
    out_.begins.shrink_to_fit();
    out_.lengths.shrink_to_fit();
    return std::move(out_);
  }

 private:
  uint32_t block_;
  DocumentPieces out_;
};

Status check_ends_are_said(const TokenStream& stream, std::optional<uint64_t> end_token) {
  if (end_token || stream.document_ends()) return Status::ok();
  return {Code::kUsage, stream.paths().front() +
                            " does not say where its documents end; set data.document_end to the "
                            "token that ends one, or data.documents to stream"};
}

Status too_many_pieces(const TokenStream& stream) {
  return {Code::kUsage,
          "the documents of " + stream.paths().front() +
              " and the files before it make more than " + std::to_string(limits::kDocumentPieces) +
              " pieces of model.block tokens; use fewer files, or set data.documents to stream"};
}

// Adds the documents of one stream, whose first token is `first`. They end where the stream's files
// say, and at the ends from `next` on that lie within the stream.
bool add_stream(const TokenStream& stream, uint64_t first, const std::vector<uint64_t>& by_token,
                size_t& next, PieceList& pieces) {
  static const std::vector<uint64_t> kNone;
  const std::vector<uint64_t>& said = stream.document_ends() ? *stream.document_ends() : kNone;
  const uint64_t behind = first + stream.tokens();
  uint64_t begin = first;
  auto at = said.begin();
  while (true) {
    const bool is_said = at != said.end();
    const bool is_by_token = next < by_token.size() && by_token[next] <= behind;
    if (!is_said && !is_by_token) break;
    const uint64_t end =
        std::min(is_said ? first + *at : behind, is_by_token ? by_token[next] : behind);
    if (is_by_token && by_token[next] == end) ++next;
    if (is_said && first + *at == end) ++at;
    if (!pieces.add(begin, end)) return false;
    begin = end;
  }
  return begin == behind || pieces.add(begin, behind);
}

}  // namespace

Result<DocumentPieces> cut_documents(const std::vector<TokenStream>& streams, uint32_t block,
                                     std::optional<uint64_t> end_token, const std::string& key,
                                     const std::string& cache_dir, const ProgressFn& progress) {
  for (const TokenStream& stream : streams)
    LOCKSTEP_RETURN_IF_ERROR(check_ends_are_said(stream, end_token));
  std::vector<uint64_t> by_token;
  if (end_token) {
    LOCKSTEP_ASSIGN_OR_RETURN(by_token,
                              document_ends(streams, *end_token, key, cache_dir, progress));
    if (by_token.empty())
      return Status(Code::kUsage,
                    "data.document_end is " + std::to_string(*end_token) + ", but " +
                        streams.front().paths().front() +
                        (streams.size() > 1 ? " and the files beside it have" : " has") +
                        " no such token; set the token that ends documents");
  }
  PieceList pieces(block);
  uint64_t first = 0;
  size_t next = 0;
  for (const TokenStream& stream : streams) {
    if (!add_stream(stream, first, by_token, next, pieces)) return too_many_pieces(stream);
    first += stream.tokens();
  }
  DocumentPieces out = pieces.take();
  if (!out.begins.empty()) return out;
  return Status(Code::kBadData, streams.front().paths().front() +
                                    " has no document of two tokens, so there is nothing to "
                                    "predict" +
                                    (end_token ? "; check data.document_end" : ""));
}

}  // namespace lockstep::data
