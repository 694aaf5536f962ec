#include "data/index/token_dataset.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "comm/base/check.h"
#include "comm/base/hash.h"
#include "comm/base/limits.h"
#include "data/index/mapped_file.h"
#include "data/index/records.h"
#include "data/index/token_files.h"

namespace lockstep::data {
namespace {

constexpr uint64_t kTextVocabulary = 256;

struct TokenFile {
  std::string path;
  MappedFile file;
  TokenRange range;
  uint64_t first_sample = 0;

  std::span<const uint8_t> content() const {
    return file.bytes().subspan(range.offset, range.tokens * range.token_bytes);
  }
};

template <typename T>
uint32_t token_at(std::span<const uint8_t> content, uint64_t i) {
  T value;
  std::memcpy(&value, content.data() + i * sizeof(T), sizeof(T));
  return value;
}

// The largest; a loop over plain integers, which the compiler makes wide.
template <typename T>
uint32_t largest_of(const TokenFile& file) {
  const std::span<const uint8_t> content = file.content();
  T largest = 0;
  for (uint64_t i = 0; i < file.range.tokens; ++i)
    largest = std::max(largest, static_cast<T>(token_at<T>(content, i)));
  return largest;
}

template <typename T>
Status beyond(const TokenFile& file, uint64_t vocab) {
  uint64_t i = 0;
  while (token_at<T>(file.content(), i) < vocab) ++i;
  return {Code::kBadData, file.path + " has token " +
                              std::to_string(token_at<T>(file.content(), i)) + " at offset " +
                              std::to_string(file.range.offset + i * sizeof(T)) +
                              ", beyond the vocabulary of " + std::to_string(vocab) +
                              "; is model.vocab right, and the format of the file?"};
}

class TokenDataset final : public Dataset {
 public:
  TokenDataset(std::vector<TokenFile> files, std::string format, uint32_t classes, uint32_t block)
      : token_files_(std::move(files)), format_(std::move(format)), classes_(classes) {
    shape_.tokens = block;
    shape_.token_bytes = token_files_.front().range.token_bytes;
    for (TokenFile& file : token_files_) {
      file.first_sample = samples_;
      samples_ += (file.range.tokens - 1) / block;
      files_.push_back(file.path);
    }
    Xxh3 hash;
    hash.update("lockstep sequences 1\nformat " + format_ + "\nsamples " +
                std::to_string(samples_) + "\nblock " + std::to_string(block) + "\ntoken bytes " +
                std::to_string(shape_.token_bytes) + "\n");
    for (const TokenFile& file : token_files_) {
      hash.update("tokens " + std::to_string(file.range.tokens) + "\n");
      hash_sampled(file.content(), kWholeContentBytes, hash);
    }
    fingerprint_ = hash.hex();
  }

  uint64_t samples() const override { return samples_; }
  SampleShape shape() const override { return shape_; }
  uint32_t classes() const override { return classes_; }
  const std::string& format() const override { return format_; }
  const std::string& fingerprint() const override { return fingerprint_; }
  const std::vector<ChannelStatistics>& statistics() const override { return statistics_; }
  const std::vector<std::string>& files() const override { return files_; }

  const uint8_t* sample(uint64_t i) const override {
    auto file = std::upper_bound(token_files_.begin(), token_files_.end(), i,
                                 [](uint64_t n, const TokenFile& f) { return n < f.first_sample; });
    --file;
    return file->content().data() + (i - file->first_sample) * shape_.tokens * shape_.token_bytes;
  }
  uint32_t label(uint64_t) const override {
    LOCKSTEP_CHECK(false, "the labels of a sequence are in its sample");
  }

 private:
  std::vector<TokenFile> token_files_;  // not empty
  std::string format_;
  uint32_t classes_;
  SampleShape shape_;
  uint64_t samples_ = 0;
  std::vector<std::string> files_;
  std::string fingerprint_;
  const std::vector<ChannelStatistics> statistics_;
};

Result<TokenFile> open_token_file(const std::string& path, const std::string& format,
                                  uint32_t block) {
  LOCKSTEP_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
  const auto range = token_range(file.bytes(), format);
  if (!range.is_ok()) return Status(range.status().code(), path + " " + range.status().message());
  if (range->tokens <= block)
    return Status(Code::kBadData, path + " has " + std::to_string(range->tokens) +
                                      " tokens; a sequence of model.block " +
                                      std::to_string(block) + " and its last label need " +
                                      std::to_string(uint64_t{block} + 1));
  file.will_need();
  return TokenFile{path, std::move(file), range.value()};
}

// The number of different tokens: what was asked for, if no token is beyond it.
Result<uint32_t> vocabulary(const std::vector<TokenFile>& files, const std::string& format,
                            uint32_t asked, const ProgressFn& progress) {
  const uint64_t limit = asked == 0 ? limits::kVocabulary : asked;
  uint32_t largest = 0;
  for (const TokenFile& file : files) {
    if (progress) progress("checking " + file.path, 0, file.content().size());
    uint32_t found = 0;
    Status (*refuse)(const TokenFile&, uint64_t) = nullptr;
    switch (file.range.token_bytes) {
      case 1:
        found = largest_of<uint8_t>(file);
        refuse = beyond<uint8_t>;
        break;
      case 2:
        found = largest_of<uint16_t>(file);
        refuse = beyond<uint16_t>;
        break;
      default:
        found = largest_of<uint32_t>(file);
        refuse = beyond<uint32_t>;
    }
    if (found >= limit) return refuse(file, limit);
    largest = std::max(largest, found);
  }
  if (asked > 0) return asked;
  return format == "text" ? static_cast<uint32_t>(kTextVocabulary) : largest + 1;
}

}  // namespace

Result<std::unique_ptr<Dataset>> open_token_dataset(const std::vector<std::string>& paths,
                                                    const std::string& format,
                                                    const SequenceCut& cut,
                                                    const ProgressFn& progress) {
  if (cut.block == 0 || cut.block > limits::kSequenceTokens)
    return Status(Code::kUsage, paths.front() +
                                    " holds tokens, which are cut into sequences of "
                                    "model.block; that is " +
                                    std::to_string(cut.block) + " but must be 1 to " +
                                    std::to_string(limits::kSequenceTokens));
  std::vector<TokenFile> files;
  for (const std::string& path : paths) {
    LOCKSTEP_ASSIGN_OR_RETURN(TokenFile file, open_token_file(path, format, cut.block));
    files.push_back(std::move(file));
    if (files.back().range.token_bytes != files.front().range.token_bytes)
      return Status(Code::kBadData, files.front().path + " has " +
                                        std::to_string(files.front().range.token_bytes) +
                                        " bytes a token, " + path + " has " +
                                        std::to_string(files.back().range.token_bytes) +
                                        "; they do not belong together");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const uint32_t vocab, vocabulary(files, format, cut.vocab, progress));
  return std::unique_ptr<Dataset>(
      new TokenDataset(std::move(files), format == "text" ? "text" : "tokens", vocab, cut.block));
}

}  // namespace lockstep::data
