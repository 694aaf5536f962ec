#include "data/formats/tokens/document_ends.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "comm/base/file.h"
#include "comm/base/hash.h"
#include "comm/base/limits.h"
#include "data/files/mapped_file.h"

namespace lockstep::data {
namespace {

constexpr char kEndsMagic[9] = "LKDOCS01";
constexpr size_t kEndsHead = 16;
constexpr size_t kEndsHashBytes = 32;

// The token is rare, so a loop first asks whether any of so many tokens is it. Compilers vectorise
// that loop.
constexpr uint64_t kTokensAtOnce = 64;

// Stops if there are too many ends.
template <typename T>
void find_token(std::span<const uint8_t> piece, T wanted, uint64_t first,
                std::vector<uint64_t>& ends) {
  const uint64_t tokens = piece.size() / sizeof(T);
  T some[kTokensAtOnce];
  for (uint64_t at = 0; at < tokens && ends.size() <= limits::kDocumentPieces;
       at += kTokensAtOnce) {
    const uint64_t here = std::min(kTokensAtOnce, tokens - at);
    std::memcpy(some, piece.data() + at * sizeof(T), here * sizeof(T));
    uint32_t found = 0;
    if (here == kTokensAtOnce)
      for (uint64_t i = 0; i < kTokensAtOnce; ++i) found |= some[i] == wanted ? 1U : 0U;
    if (here == kTokensAtOnce && found == 0) continue;
    for (uint64_t i = 0; i < here; ++i)
      if (some[i] == wanted) ends.push_back(first + at + i + 1);
  }
}

template <typename T>
void find_in_stream(const TokenStream& stream, uint64_t token, uint64_t first,
                    std::vector<uint64_t>& ends) {
  if (token > std::numeric_limits<T>::max()) return;
  for (size_t i = 0; i < stream.pieces(); ++i)
    find_token(stream.piece(i), static_cast<T>(token), first + stream.first_of_piece(i), ends);
}

std::optional<std::vector<uint64_t>> kept_ends(const std::string& path, uint64_t tokens) {
  const auto file = MappedFile::open(path);
  if (!file.is_ok()) return std::nullopt;
  const auto bytes = file->bytes();
  if (bytes.size() < kEndsHead + kEndsHashBytes || std::memcmp(bytes.data(), kEndsMagic, 8) != 0)
    return std::nullopt;
  const uint64_t room = bytes.size() - kEndsHead - kEndsHashBytes;
  uint64_t count = 0;
  std::memcpy(&count, bytes.data() + 8, sizeof count);
  if (room % 8 != 0 || count != room / 8) return std::nullopt;
  std::vector<uint64_t> ends(count);
  if (count > 0) std::memcpy(ends.data(), bytes.data() + kEndsHead, room);
  // Hashes the copy, which no longer changes.
  Xxh3 hash;
  hash.update(bytes.data(), kEndsHead);
  hash.update(ends.data(), room);
  const std::string found(reinterpret_cast<const char*>(bytes.data()) + kEndsHead + room,
                          kEndsHashBytes);
  if (hash.hex() != found || !std::is_sorted(ends.begin(), ends.end())) return std::nullopt;
  if (count > 0 && (ends.front() == 0 || ends.back() > tokens)) return std::nullopt;
  return ends;
}

void keep_ends(const std::string& cache_dir, const std::string& path,
               const std::vector<uint64_t>& ends) {
  std::error_code error;
  std::filesystem::create_directories(cache_dir, error);
  const uint64_t count = ends.size();
  std::string text(kEndsMagic, 8);
  text.reserve(kEndsHead + 8 * count + kEndsHashBytes);
  text.append(reinterpret_cast<const char*>(&count), sizeof count);
  text.append(reinterpret_cast<const char*>(ends.data()), 8 * count);
  text += xxh3_hex(text.data(), text.size());
  (void)replace_file(path, text);
}

}  // namespace

Result<std::vector<uint64_t>> document_ends(const std::vector<TokenStream>& streams, uint64_t token,
                                            const std::string& key, const std::string& cache_dir,
                                            const ProgressFn& progress) {
  uint64_t tokens = 0;
  for (const TokenStream& stream : streams) tokens += stream.tokens();
  const std::string path = cache_dir + "/documents-" + key + "-" + std::to_string(token) + ".ends";
  if (!cache_dir.empty())
    if (auto kept = kept_ends(path, tokens)) return std::move(*kept);
  std::vector<uint64_t> ends;
  uint64_t first = 0;
  for (const TokenStream& stream : streams) {
    if (progress) progress("finding documents of " + stream.paths().front(), 0, stream.bytes());
    if (stream.token_bytes() == 1) find_in_stream<uint8_t>(stream, token, first, ends);
    if (stream.token_bytes() == 2) find_in_stream<uint16_t>(stream, token, first, ends);
    if (stream.token_bytes() == 4) find_in_stream<uint32_t>(stream, token, first, ends);
    if (stream.token_bytes() == 8) find_in_stream<uint64_t>(stream, token, first, ends);
    LOCKSTEP_RETURN_IF_ERROR(stream.unchanged());
    if (ends.size() > limits::kDocumentPieces)
      return Status(Code::kUsage, "data.document_end is " + std::to_string(token) + ", but " +
                                      stream.paths().front() +
                                      " and the files before it hold that token in more than " +
                                      std::to_string(limits::kDocumentPieces) +
                                      " places; set the token that ends documents");
    first += stream.tokens();
  }
  if (!cache_dir.empty()) keep_ends(cache_dir, path, ends);
  return ends;
}

}  // namespace lockstep::data
