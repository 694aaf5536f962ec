#include "data/csv/csv_records.h"

#include <algorithm>

#include "data/base/file_errors.h"

namespace lockstep::data {
namespace {

constexpr std::string_view kMark = "\xEF\xBB\xBF";
constexpr std::string_view kUtf16Marks[] = {"\xFF\xFE", "\xFE\xFF"};

// By the first line.
char separator_in(std::string_view text) {
  bool is_quoted = false;
  bool has_semicolon = false;
  for (const char c : text) {
    if (c == '"') is_quoted = !is_quoted;
    if (is_quoted) continue;
    if (c == '\n' || c == '\r') break;
    if (c == '\t') return '\t';
    has_semicolon = has_semicolon || c == ';';
  }
  return has_semicolon ? ';' : ',';
}

}  // namespace

std::string csv_place(uint64_t line, size_t column) {
  return "line " + std::to_string(line) + ", column " + std::to_string(column + 1);
}

CsvRecords::CsvRecords(std::string_view text) : text_(text) {
  if (text_.starts_with(kMark)) text_.remove_prefix(kMark.size());
  // An empty line is no record, the first one either.
  const size_t first = std::min(text_.find_first_not_of("\r\n"), text_.size());
  separator_ = separator_in(text_.substr(first));
}

Result<CsvRecords> CsvRecords::open(std::string_view text) {
  for (const std::string_view mark : kUtf16Marks)
    if (text.starts_with(mark))
      return bad("is text in UTF-16; save it as UTF-8, or with iconv -f UTF-16 -t UTF-8");
  return CsvRecords(text);
}

// Passes over the end of a line, where there is one.
bool CsvRecords::skip_end() {
  if (at_ == text_.size() || (text_[at_] != '\n' && text_[at_] != '\r')) return false;
  at_ += text_[at_] == '\r' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n' ? 2 : 1;
  ++line_;
  return true;
}

Result<bool> CsvRecords::next(CsvRecord& record) {
  while (skip_end()) {
  }
  record.fields.clear();
  unquoted_.clear();
  record.line = line_;
  if (at_ == text_.size()) return false;
  for (;;) {
    if (record.fields.size() == kCsvFields)
      return bad("has more than " + std::to_string(kCsvFields) + " columns in line " +
                 std::to_string(record.line) + "; is it a table with one row a line?");
    LOCKSTEP_ASSIGN_OR_RETURN(const CsvField field, this->field(record));
    record.fields.push_back(field);
    if (at_ == text_.size() || text_[at_] != separator_) break;
    ++at_;
  }
  skip_end();
  return true;
}

Result<CsvField> CsvRecords::field(const CsvRecord& record) {
  if (at_ < text_.size() && text_[at_] == '"') return quoted(record);
  const size_t begin = at_;
  for (; at_ < text_.size(); ++at_) {
    const char c = text_[at_];
    if (c == separator_ || c == '\n' || c == '\r') break;
    if (c != '"' && c != '\0') continue;
    return bad("has " + std::string(c == '"' ? "a quote" : "a NUL byte") +
               " inside an unquoted field in " + csv_place(record.line, record.fields.size()) +
               (c == '"' ? "; put the field in quotes, and write each quote within it twice"
                         : ": it is damaged, or not text"));
  }
  return CsvField{text_.substr(begin, at_ - begin), false};
}

Result<CsvField> CsvRecords::quoted(const CsvRecord& record) {
  const std::string place = csv_place(record.line, record.fields.size());
  const size_t begin = ++at_;
  bool has_quotes = false;
  for (;; ++at_) {
    if (at_ == text_.size())
      return bad("is truncated: it ends inside the quoted field that begins in " + place);
    const char c = text_[at_];
    if (c == '\0') return bad("has a NUL byte in " + place + ": it is damaged, or not text");
    // In "\r\n" only the second counts as a line.
    const bool is_pair = c == '\r' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n';
    if (c == '\n' || (c == '\r' && !is_pair)) ++line_;
    if (c != '"') continue;
    if (at_ + 1 == text_.size() || text_[at_ + 1] != '"') break;
    has_quotes = true;
    ++at_;
  }
  std::string_view inside = text_.substr(begin, at_ - begin);
  ++at_;
  if (at_ < text_.size() && text_[at_] != separator_ && text_[at_] != '\n' && text_[at_] != '\r')
    return bad("has text after the closing quote of the field in " + place +
               "; write a quote within a field twice");
  if (!has_quotes) return CsvField{inside, true};
  std::string& once = unquoted_.emplace_back();
  for (size_t i = 0; i < inside.size(); ++i) {
    once += inside[i];
    if (inside[i] == '"') ++i;
  }
  return CsvField{once, true};
}

}  // namespace lockstep::data
