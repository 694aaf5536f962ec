#include "data/formats/tokens/open_tokens.h"

#include <utility>

#include "data/formats/tokens/token_format.h"
#include "data/formats/tokens/tokenized_text.h"

namespace lockstep::data {

Result<std::vector<TokenStream>> open_token_streams(
    const std::vector<std::string>& paths, const std::string& format, const ColumnNames& columns,
    const BpeVocabulary* vocabulary, const std::string& cache_dir, const ProgressFn& progress,
    bool with_documents) {
  const TokenFormat& row = token_format(format);
  if (row.open != nullptr) return row.open(paths, columns, cache_dir, progress, with_documents);
  std::vector<TokenStream> streams;
  for (const std::string& path : paths) {
    if (vocabulary != nullptr) {
      LOCKSTEP_ASSIGN_OR_RETURN(TokenizedText made,
                                open_tokenized(path, *vocabulary, cache_dir, progress));
      streams.emplace_back(made.token_bytes, /*is_signed=*/false);
      streams.back().add_file(path + " (its tokens)", std::move(made.file));
      streams.back().add_piece(0, made.tokens);
      if (with_documents) streams.back().begin_documents();
      continue;
    }
    LOCKSTEP_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
    LOCKSTEP_ASSIGN_OR_RETURN(const TokenRange range, row.range(path, file.bytes()));
    streams.emplace_back(range.token_bytes, range.is_signed);
    streams.back().add_file(path, std::move(file));
    streams.back().add_piece(range.offset, range.tokens);
    if (!with_documents || row.document_ends == nullptr) continue;
    streams.back().begin_documents();
    LOCKSTEP_ASSIGN_OR_RETURN(const auto ends, row.document_ends(path, range.tokens));
    for (const uint64_t end : ends) streams.back().end_document(end);
  }
  return streams;
}

}  // namespace lockstep::data
