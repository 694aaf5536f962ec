#include "data/formats/tokens/arrow_tokens.h"

#include <charconv>
#include <optional>
#include <system_error>
#include <utility>

#include "data/arrow/column.h"
#include "data/base/file_errors.h"
#include "data/formats/arrow/arrow_file.h"

namespace lockstep::data {
namespace {

// Where the tokens of a batch lie in the file.
struct TokensIn {
  uint64_t offset = 0;
  uint64_t tokens = 0;
  std::vector<uint64_t> row_ends = {};  // of lists, from the first token on
};

TokensIn even_rows(uint64_t offset, uint64_t rows, uint64_t width, bool with_rows) {
  TokensIn out{offset, rows * width};
  // Rows of nothing take no place in the file, whatever their number.
  for (uint64_t i = 1; with_rows && width > 0 && i <= rows; ++i) out.row_ends.push_back(i * width);
  return out;
}

// The values from the first row's begin to the last one's end.
Result<TokensIn> tokens_of(const ArrowFile& file, const ArrowBatch& batch, bool with_rows) {
  auto parts = parts_of(file.layout.schema, batch, file.choice.samples);
  const ArrowPart& numbers = parts.back();
  LOCKSTEP_ASSIGN_OR_RETURN(const uint8_t* first, fixed_values(file.bytes(), numbers));
  const auto offset = static_cast<uint64_t>(first - file.bytes().data());
  const ArrowPart& rows = parts.front();
  if (parts.size() == 1) return TokensIn{offset, numbers.node.rows};
  LOCKSTEP_RETURN_IF_ERROR(check_no_nulls(rows));
  if (rows.field->kind == ArrowKind::kFixedList)
    return even_rows(offset, rows.node.rows, rows.field->width, with_rows);
  std::optional<uint64_t> begin;
  uint64_t end = 0;
  std::vector<uint64_t> ends;
  LOCKSTEP_RETURN_IF_ERROR(walk_offsets(file.bytes(), rows, numbers.node.rows,
                                        [&](uint64_t, uint64_t row_begin, uint64_t row_end) {
                                          if (!begin) begin = row_begin;
                                          end = row_end;
                                          if (with_rows) ends.push_back(end - *begin);
                                          return Status::ok();
                                        }));
  const uint64_t from = begin.value_or(0);
  return TokensIn{offset + from * numbers.field->width, end - from, std::move(ends)};
}

// Drops the last row's end in the batches whose last documents go on.
Status open_ends(const ArrowSchema& schema, std::vector<TokensIn>& batches) {
  const auto said = schema.metadata.find(kArrowOpenKey);
  if (said == schema.metadata.end()) return Status::ok();
  const char* at = said->second.data();
  const char* const end = at + said->second.size();
  size_t least = 0;  // they rise
  while (at < end) {
    size_t batch = 0;
    const auto [next, error] = std::from_chars(at, end, batch);
    const bool is_last = next == end;
    if (error != std::errc() || (!is_last && *next != ',') || batch < least ||
        batch >= batches.size() || batches[batch].row_ends.empty())
      return bad("is damaged: its metadata on batches whose last document goes on (" +
                 std::string(kArrowOpenKey) + ") does not fit its " +
                 std::to_string(batches.size()) + " batches");
    batches[batch].row_ends.pop_back();
    least = batch + 1;
    at = is_last ? end : next + 1;
  }
  return Status::ok();
}

Status add_file(const std::string& path, const ColumnNames& columns, const std::string& cache_dir,
                const ProgressFn& progress, bool with_documents, std::optional<std::string>& last,
                std::vector<TokenStream>& streams) {
  LOCKSTEP_ASSIGN_OR_RETURN(ArrowFile file,
                            open_arrow_file(path, "arrow_tokens", columns, cache_dir, progress));
  const ArrowField& column = file.layout.schema.fields[file.choice.samples];
  const ArrowField& number = column.children.empty() ? column : column.children[0];
  const auto said = file.layout.schema.metadata.find(kArrowStreamKey);
  const auto key =
      said == file.layout.schema.metadata.end() ? std::nullopt : std::optional(said->second);
  if (!key || key != last) streams.emplace_back(number.width, number.is_signed);
  last = key;
  const bool with_rows = with_documents && !column.children.empty();
  TokenStream& stream = streams.back();
  stream.set_column(file.choice.columns.input);
  if (stream.token_bytes() != number.width)
    return bad(path + " has " + std::to_string(number.width) +
               " bytes a token, the files before it have " + std::to_string(stream.token_bytes()) +
               "; they do not belong together");
  std::vector<TokensIn> found;
  for (const ArrowBatch& batch : file.layout.batches) {
    const auto tokens = tokens_of(file, batch, with_rows);
    if (!tokens.is_ok()) return about(path, tokens.status());
    found.push_back(*tokens);
  }
  if (with_rows)
    if (const Status status = open_ends(file.layout.schema, found); !status.is_ok())
      return about(path, status);
  stream.add_file(path + (file.is_inflated ? " (inflated)" : ""), std::move(file.file));
  if (with_rows && !stream.document_ends()) stream.begin_documents();
  for (const TokensIn& piece : found) {
    for (const uint64_t end : piece.row_ends) stream.end_document(stream.tokens() + end);
    stream.add_piece(piece.offset, piece.tokens);
  }
  return Status::ok();
}

}  // namespace

Result<std::vector<TokenStream>> open_arrow_tokens(const std::vector<std::string>& paths,
                                                   const ColumnNames& columns,
                                                   const std::string& cache_dir,
                                                   const ProgressFn& progress,
                                                   bool with_documents) {
  std::vector<TokenStream> streams;
  std::optional<std::string> last;
  for (const std::string& path : paths)
    LOCKSTEP_RETURN_IF_ERROR(
        add_file(path, columns, cache_dir, progress, with_documents, last, streams));
  return streams;
}

}  // namespace lockstep::data
