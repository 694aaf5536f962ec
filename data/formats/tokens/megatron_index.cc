#include "data/formats/tokens/megatron_index.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>

#include "comm/base/limits.h"
#include "data/base/file_errors.h"

namespace lockstep::data {
namespace {

constexpr char kMegatronMagic[9] = {'M', 'M', 'I', 'D', 'I', 'D', 'X', 0, 0};
constexpr size_t kVersionAt = 9;
constexpr size_t kTypeAt = 17;
constexpr size_t kSequencesAt = 18;
constexpr size_t kDocumentsAt = 26;
constexpr size_t kTablesAt = 34;

constexpr uint8_t kInt32 = 4;
constexpr uint8_t kUint16 = 8;
constexpr const char* kTypeNames[] = {"",      "uint8",   "int8",    "int16", "int32",
                                      "int64", "float64", "float32", "uint16"};

// REQUIRES: it lies in `file`. The tables are not aligned.
template <typename T>
T number(std::span<const uint8_t> file, uint64_t at) {
  T value;
  std::memcpy(&value, file.data() + at, sizeof(T));
  return value;
}

Status check_type(uint8_t type) {
  if (type == kInt32 || type == kUint16) return Status::ok();
  const bool is_known = type > 0 && type < std::size(kTypeNames);
  return bad("says that tokens are " +
             (is_known ? std::string(kTypeNames[type]) : "of type " + std::to_string(type)) +
             "; Lockstep reads uint16 and int32, which Megatron-LM's preprocess_data.py writes");
}

// Where the tables lie. All sizes are within the file, so that no sum of them overflows.
struct Tables {
  uint64_t sequences;
  uint64_t documents;
  uint64_t pointers_at;
  uint64_t documents_at;
};

Result<Tables> find_tables(std::span<const uint8_t> file) {
  Tables tables{number<uint64_t>(file, kSequencesAt), number<uint64_t>(file, kDocumentsAt), 0, 0};
  const uint64_t room = file.size() - kTablesAt;
  if (tables.sequences > room / 12 || tables.documents > room / 8 ||
      12 * tables.sequences + 8 * tables.documents > room)
    return bad("is truncated: it has " + std::to_string(file.size()) + " bytes, too few for " +
               std::to_string(tables.sequences) + " sequences and " +
               std::to_string(tables.documents) + " documents; copy it again");
  const uint64_t rest = room - 12 * tables.sequences - 8 * tables.documents;
  if (rest == tables.sequences && rest > 0)
    return bad("has a mode for every sequence; Lockstep does not read multimodal datasets");
  if (rest > 0) return bad("has " + std::to_string(rest) + " bytes more than its header promises");
  tables.pointers_at = kTablesAt + 4 * tables.sequences;
  tables.documents_at = tables.pointers_at + 8 * tables.sequences;
  return tables;
}

// Checks that sequences follow each other without a gap. Returns their number of tokens.
Result<uint64_t> count_tokens(std::span<const uint8_t> file, const Tables& tables,
                              uint32_t token_bytes) {
  uint64_t tokens = 0;
  for (uint64_t i = 0; i < tables.sequences; ++i) {
    const auto size = number<int32_t>(file, kTablesAt + 4 * i);
    const auto pointer = number<uint64_t>(file, tables.pointers_at + 8 * i);
    if (size < 0)
      return bad("is damaged: the length of sequence " + std::to_string(i) + " is " +
                 std::to_string(size));
    if (pointer != tokens * token_bytes)
      return bad("is damaged: the place of sequence " + std::to_string(i) + " is " +
                 std::to_string(pointer) + ", but the sequences before it end at " +
                 std::to_string(tokens * token_bytes));
    tokens += static_cast<uint64_t>(size);
    if (tokens > limits::kDatasetBytes / token_bytes)
      return bad("claims more than the limit of " + std::to_string(limits::kDatasetBytes) +
                 " bytes a file");
  }
  return tokens;
}

Status check_documents(std::span<const uint8_t> file, const Tables& tables) {
  uint64_t before = 0;
  for (uint64_t i = 0; i < tables.documents; ++i) {
    const auto first = number<uint64_t>(file, tables.documents_at + 8 * i);
    if (first < before || first > tables.sequences || (i == 0 && first != 0))
      return bad("is damaged: document " + std::to_string(i) + " begins at sequence " +
                 std::to_string(first) + " of " + std::to_string(tables.sequences));
    before = first;
  }
  if (tables.documents > 0 && before == tables.sequences) return Status::ok();
  return bad("is damaged: its documents end at sequence " + std::to_string(before) + " of " +
             std::to_string(tables.sequences));
}

}  // namespace

bool is_megatron_index(std::span<const uint8_t> file) {
  return file.size() >= sizeof kMegatronMagic &&
         std::memcmp(file.data(), kMegatronMagic, sizeof kMegatronMagic) == 0;
}

Result<MegatronIndex> parse_megatron_index(std::span<const uint8_t> file) {
  if (!is_megatron_index(file))
    return bad("is not an index of Megatron-LM: it does not begin with MMIDIDX");
  if (file.size() < kTablesAt)
    return bad("is truncated: it ends at offset " + std::to_string(file.size()) +
               ", inside its header of " + std::to_string(kTablesAt) + " bytes");
  const auto version = number<uint64_t>(file, kVersionAt);
  if (version != 1)
    return bad("is an index of version " + std::to_string(version) + "; Lockstep reads version 1");
  const uint8_t type = file[kTypeAt];
  LOCKSTEP_RETURN_IF_ERROR(check_type(type));
  LOCKSTEP_ASSIGN_OR_RETURN(const Tables tables, find_tables(file));
  MegatronIndex index;
  index.token_bytes = type == kUint16 ? 2 : 4;
  index.is_signed = type == kInt32;
  index.sequences = tables.sequences;
  LOCKSTEP_ASSIGN_OR_RETURN(index.tokens, count_tokens(file, tables, index.token_bytes));
  LOCKSTEP_RETURN_IF_ERROR(check_documents(file, tables));
  return index;
}

Result<std::vector<uint64_t>> megatron_documents(std::span<const uint8_t> file) {
  LOCKSTEP_RETURN_IF_ERROR(parse_megatron_index(file).status());
  LOCKSTEP_ASSIGN_OR_RETURN(const Tables tables, find_tables(file));
  std::vector<uint64_t> ends;
  ends.reserve(tables.documents);
  uint64_t sequence = 0;
  uint64_t tokens = 0;
  for (uint64_t i = 1; i < tables.documents; ++i) {
    const auto end = number<uint64_t>(file, tables.documents_at + 8 * i);
    // Bounded: a file that changes meanwhile may state any end.
    for (; sequence < std::min(end, tables.sequences); ++sequence)
      tokens += number<uint32_t>(file, kTablesAt + 4 * sequence);
    ends.push_back(tokens);
  }
  return ends;
}

}  // namespace lockstep::data
