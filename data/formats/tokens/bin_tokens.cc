#include "data/formats/tokens/bin_tokens.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>

#include "data/base/file_errors.h"
#include "data/formats/arrays/npy_header.h"

namespace lockstep::data {
namespace {

// llm.c's header: 256 numbers of four bytes, of which the first three say something.
constexpr uint64_t kHeaderBytes = 1024;
struct HeaderKind {
  uint32_t magic;
  uint32_t version;
  uint32_t token_bytes;
};
constexpr HeaderKind kHeaderKinds[] = {{20240520, 1, 2}, {20240801, 7, 4}};

// REQUIRES: at least 4 (i + 1) bytes.
uint32_t header_word(std::span<const uint8_t> bytes, size_t i) {
  uint32_t value;
  std::memcpy(&value, bytes.data() + 4 * i, sizeof value);
  return value;
}

const HeaderKind* header_kind(std::span<const uint8_t> file) {
  if (file.size() < sizeof(uint32_t)) return nullptr;
  const uint32_t magic = header_word(file, 0);
  const auto* kind = std::find_if(std::begin(kHeaderKinds), std::end(kHeaderKinds),
                                  [magic](const HeaderKind& k) { return k.magic == magic; });
  return kind == std::end(kHeaderKinds) ? nullptr : kind;
}

// With llm.c's header.
Result<TokenRange> range_behind_header(std::span<const uint8_t> file, const HeaderKind& kind) {
  if (file.size() < kHeaderBytes)
    return bad("is truncated: it ends at offset " + std::to_string(file.size()) +
               ", inside its header of " + std::to_string(kHeaderBytes) + " bytes");
  if (header_word(file, 1) != kind.version)
    return bad("has version " + std::to_string(header_word(file, 1)) +
               " at offset 4; Lockstep reads version " + std::to_string(kind.version));
  const TokenRange range{kHeaderBytes, header_word(file, 2), kind.token_bytes};
  const uint64_t wanted = kHeaderBytes + range.tokens * range.token_bytes;
  if (file.size() == wanted) return range;
  return bad((file.size() < wanted ? "is truncated: it has " : "has ") +
             std::to_string(file.size()) + " bytes, its header promises " + std::to_string(wanted));
}

Result<TokenRange> range_in_array(std::span<const uint8_t> file) {
  LOCKSTEP_ASSIGN_OR_RETURN(const NpyHeader header, parse_npy_header(file));
  if (header.dims.size() != 1)
    return bad("has the shape " + header.shape_text() +
               ", but tokens have one dimension; write it again: numpy.save(FILE, a.reshape(-1)), "
               "or for images name the directory");
  const bool is_wide = header.is_integer() && header.element_bytes == 4;
  if (!is_wide && header.type_text() != "uint16")
    return bad("holds " + header.type_text() +
               ", but tokens are uint16, uint32 or int32; write it again: numpy.save(FILE, "
               "a.astype(\"uint32\")), or \"uint16\" for a vocabulary of at most 65536");
  LOCKSTEP_RETURN_IF_ERROR(check_npy_size(header, file.size()));
  return TokenRange{header.header_bytes, header.dims[0], header.element_bytes, header.kind == 'i'};
}

Result<TokenRange> bare_range(std::span<const uint8_t> file, uint32_t token_bytes) {
  if (file.empty()) return bad("is empty");
  if (file.size() % token_bytes == 0) return TokenRange{0, file.size() / token_bytes, token_bytes};
  return bad("has " + std::to_string(file.size()) + " bytes, not a multiple of the " +
             std::to_string(token_bytes) + " bytes of a token: the last token, at offset " +
             std::to_string(file.size() / token_bytes * token_bytes) + ", is cut off");
}

}  // namespace

bool has_token_header(std::span<const uint8_t> file) {
  return header_kind(file) != nullptr;
}

Result<TokenRange> tokens_in_bin(std::span<const uint8_t> file) {
  if (is_npy(file)) return range_in_array(file);
  const HeaderKind* kind = header_kind(file);
  return kind == nullptr ? bare_range(file, 2) : range_behind_header(file, *kind);
}

Result<TokenRange> tokens_in_bare_u32(std::span<const uint8_t> file) {
  return bare_range(file, 4);
}

Result<TokenRange> tokens_in_text(std::span<const uint8_t> file) {
  return bare_range(file, 1);
}

}  // namespace lockstep::data
