// Any bytes as a file that Lockstep writes and reads back. The first byte says which: ends of
// documents, a piece of an object, the largest token, a packing. A damaged file counts as missing.
// Files with a hash are also tried with the right hash.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "comm/base/check.h"
#include "comm/base/hash.h"
#include "comm/run/job/job.pb.h"
#include "data/dataset/sample_cut.h"
#include "data/formats/tokens/document_ends.h"
#include "data/formats/tokens/open_tokens.h"
#include "data/formats/tokens/token_vocabulary.h"
#include "data/pack/pack.h"
#include "data/source/cache/chunk_file.h"
#include "tests/support/files.h"
#include "tests/support/temporary_directory.h"

namespace lockstep::data {
namespace {

constexpr uint64_t kTokens = 8;
constexpr char kKey[] = "k";

// Tokens 1 to 8, and a place for the files about them.
class Place {
 public:
  Place() {
    std::vector<uint16_t> tokens;
    for (uint16_t token = 1; token <= kTokens; ++token) tokens.push_back(token);
    write_file(at("t.bin"), {reinterpret_cast<const char*>(tokens.data()), 2 * tokens.size()});
    auto opened = open_token_streams({at("t.bin")}, "tokens", {}, nullptr, "", {});
    LOCKSTEP_CHECK(opened.is_ok(), "the tokens are there");
    streams_ = std::move(*opened);
  }

  std::string at(const std::string& name) const { return directory_.path(name); }
  std::string path() const { return directory_.path(); }
  const std::vector<TokenStream>& streams() const { return streams_; }

 private:
  TemporaryDirectory directory_;
  std::vector<TokenStream> streams_;
};

void try_ends(const Place& place, std::string bytes, bool with_hash) {
  if (with_hash) bytes += xxh3_hex(bytes.data(), bytes.size());
  write_file(place.at("documents-k-3.ends"), bytes);
  const auto ends = document_ends(place.streams(), 3, kKey, place.path(), {});
  LOCKSTEP_CHECK(ends.is_ok() && std::is_sorted(ends->begin(), ends->end()), "ends rise");
  LOCKSTEP_CHECK(ends->empty() || (ends->front() > 0 && ends->back() <= kTokens),
                 "an end is of the tokens");
  if (!with_hash)  // no fuzzer finds a hash
    LOCKSTEP_CHECK(*ends == std::vector<uint64_t>{3}, "what is damaged is found anew");
}

// `rest` begins with the place to read from, and the length.
void try_chunk(const Place& place, std::string_view rest, bool with_hash) {
  if (rest.size() < 4) return;
  const uint64_t offset = static_cast<uint8_t>(rest[0]) * 256U + static_cast<uint8_t>(rest[1]);
  const uint64_t bytes = 1U + static_cast<uint8_t>(rest[2]) * 256U + static_cast<uint8_t>(rest[3]);
  rest.remove_prefix(4);
  const std::string path = place.at("chunk");
  const std::vector<uint8_t> content(rest.begin(), rest.end());
  if (with_hash)
    LOCKSTEP_CHECK(source::write_chunk(path, "id", content), "it can be written");
  else
    write_file(path, std::string(rest));
  std::vector<uint8_t> out(bytes);
  const bool is_read =
      source::read_chunk(path, "id", offset, bytes, out.data()) == source::ChunkRead::kRead;
  const bool is_within = offset + bytes <= content.size();
  LOCKSTEP_CHECK(is_read == (with_hash && is_within), "only what was written is read");
  LOCKSTEP_CHECK(!is_read || std::memcmp(out.data(), content.data() + offset, bytes) == 0,
                 "and as it was");
  LOCKSTEP_CHECK(source::read_chunk(path, "other", 0, 1, out.data()) != source::ChunkRead::kRead,
                 "nothing is read as another's");
}

void try_largest(const Place& place, std::string_view text) {
  write_file(place.at("tokens-k.txt"), std::string(text));
  const auto vocabulary =
      token_vocabulary(place.streams(), kKey, SampleCut{.block = 1}, nullptr, place.path(), {});
  // Lockstep believes a number that is in its own words, whatever it is.
  LOCKSTEP_CHECK(vocabulary.is_ok() ? *vocabulary > 0 : !vocabulary.status().message().empty(),
                 "a vocabulary, or what is wrong");
  if (!text.starts_with("lockstep tokens 1\nfingerprint k\nlargest "))
    LOCKSTEP_CHECK(vocabulary.is_ok() && *vocabulary == kTokens + 1, "it is counted anew");
}

void try_plan(const Place& place, std::string_view text) {
  const std::string to = place.at("packed");
  std::filesystem::create_directories(to);
  write_file(to + "/pack.json", std::string(text));
  wire::DatasetSpec spec;
  spec.set_path(place.at("t.bin"));
  spec.set_format("tokens");
  const auto packed = pack_data(spec, to, {}, place.path(), {});
  LOCKSTEP_CHECK(packed.is_ok() || !packed.status().message().empty(), "packed, or refused");
}

}  // namespace
}  // namespace lockstep::data

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep::data;
  static const Place place;
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 6) {
    case 0:
      try_ends(place, std::string(rest), /*with_hash=*/true);
      break;
    case 1:
      try_ends(place, std::string(rest), /*with_hash=*/false);
      break;
    case 2:
      try_chunk(place, rest, /*with_hash=*/true);
      break;
    case 3:
      try_chunk(place, rest, /*with_hash=*/false);
      break;
    case 4:
      try_largest(place, rest);
      break;
    default:
      try_plan(place, rest);
  }
  return 0;
}
