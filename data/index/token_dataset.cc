#include "data/index/token_dataset.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "comm/base/check.h"
#include "comm/base/hash.h"
#include "comm/base/limits.h"
#include "data/index/cached_text.h"
#include "data/index/file_errors.h"
#include "data/index/look_once.h"
#include "data/index/mapped_file.h"
#include "data/index/records.h"
#include "data/index/token_files.h"

namespace lockstep::data {
namespace {

constexpr uint32_t kTextVocabulary = 256;

struct TokenFile {
  std::string path;
  MappedFile file;
  TokenRange range;
  uint64_t first_sample = 0;

  std::span<const uint8_t> content() const {
    return file.bytes().subspan(range.offset, range.tokens * range.token_bytes);
  }
};

// The largest; a loop over plain integers, which the compiler makes wide.
template <typename T>
uint64_t largest_of(const TokenFile& file) {
  const uint8_t* content = file.content().data();
  T largest = 0;
  for (uint64_t i = 0; i < file.range.tokens; ++i) {
    T value;
    std::memcpy(&value, content + i * sizeof(T), sizeof(T));
    largest = std::max(largest, value);
  }
  return largest;
}

uint64_t largest_of(const TokenFile& file) {
  if (file.range.token_bytes == 8) return largest_of<uint64_t>(file);
  if (file.range.token_bytes == 1) return largest_of<uint8_t>(file);
  return file.range.token_bytes == 2 ? largest_of<uint16_t>(file) : largest_of<uint32_t>(file);
}

uint64_t token_at(const TokenFile& file, uint64_t i) {
  uint64_t value = 0;  // little-endian, as the files are
  std::memcpy(&value, file.content().data() + i * file.range.token_bytes, file.range.token_bytes);
  return value;
}

Status beyond(const TokenFile& file, uint64_t i, uint64_t vocab) {
  const uint64_t token = token_at(file, i);
  const bool is_wide = file.range.token_bytes == 8;
  const int64_t as_signed =
      is_wide ? static_cast<int64_t>(token) : int64_t{static_cast<int32_t>(token)};
  const std::string shown =
      file.range.is_signed ? std::to_string(as_signed) : std::to_string(token);
  return {Code::kBadData, file.path + " has token " + shown + " at offset " +
                              std::to_string(file.range.offset + i * file.range.token_bytes) +
                              ", beyond the vocabulary of " + std::to_string(vocab) +
                              "; is model.vocab right, and the format of the file?"};
}

// No token is `vocab` or more. REQUIRES that one was.
Status first_beyond(const std::vector<TokenFile>& files, uint64_t vocab) {
  for (const TokenFile& file : files)
    for (uint64_t i = 0; i < file.range.tokens; ++i)
      if (token_at(file, i) >= vocab) return beyond(file, i, vocab);
  return {Code::kBadData, files.front().path + " changed while it was opened; try again"};
}

class TokenDataset final : public Dataset {
 public:
  TokenDataset(std::vector<TokenFile> files, std::string format, uint32_t block)
      : token_files_(std::move(files)), format_(std::move(format)) {
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

  const std::vector<TokenFile>& token_files() const { return token_files_; }
  void set_classes(uint32_t classes) { classes_ = classes; }

  uint64_t samples() const override { return samples_; }
  SampleShape shape() const override { return shape_; }
  uint32_t classes() const override { return classes_; }
  const std::string& format() const override { return format_; }
  const std::string& fingerprint() const override { return fingerprint_; }
  const std::vector<ChannelStatistics>& statistics() const override { return statistics_; }
  const std::vector<std::string>& files() const override { return files_; }

  const uint8_t* sample(uint64_t i) const override {
    const TokenFile& file = token_files_[file_of(i)];
    return file.content().data() + (i - file.first_sample) * shape_.tokens * shape_.token_bytes;
  }
  uint32_t label(uint64_t) const override {
    LOCKSTEP_CHECK(false, "the labels of a sequence are in its sample");
  }
  std::string name_of(uint64_t i) const override {
    const TokenFile& file = token_files_[file_of(i)];
    return place_text(file.path, static_cast<uint64_t>(sample(i) - file.file.bytes().data()));
  }
  Status unchanged(std::span<const uint64_t> samples) const override {
    return look_once(
        samples, token_files_.size(), [this](uint64_t i) { return file_of(i); },
        [this](size_t i) { return token_files_[i].file.unchanged(); });
  }
  Status unchanged() const {
    for (const TokenFile& file : token_files_) LOCKSTEP_RETURN_IF_ERROR(file.file.unchanged());
    return Status::ok();
  }

 private:
  size_t file_of(uint64_t sample) const {
    const auto after =
        std::upper_bound(token_files_.begin(), token_files_.end(), sample,
                         [](uint64_t n, const TokenFile& f) { return n < f.first_sample; });
    return static_cast<size_t>(after - token_files_.begin()) - 1;
  }

  std::vector<TokenFile> token_files_;  // not empty
  std::string format_;
  uint32_t classes_ = 0;
  SampleShape shape_;
  uint64_t samples_ = 0;
  std::vector<std::string> files_;
  std::string fingerprint_;
  const std::vector<ChannelStatistics> statistics_;
};

Result<TokenFile> open_token_file(const std::string& path, const std::string& format,
                                  uint32_t block) {
  LOCKSTEP_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
  LOCKSTEP_ASSIGN_OR_RETURN(const TokenRange range, token_range_of(path, file, format));
  if (range.tokens <= block)
    return Status(Code::kBadData, path + " has " + std::to_string(range.tokens) +
                                      " tokens; a sequence of model.block " +
                                      std::to_string(block) + " and its last label need " +
                                      std::to_string(uint64_t{block} + 1));
  file.will_need();
  return TokenFile{path, std::move(file), range};
}

std::string largest_text(const std::string& fingerprint, uint64_t largest) {
  return "lockstep tokens 1\nfingerprint " + fingerprint + "\nlargest " + std::to_string(largest) +
         "\n";
}

// Nothing where `text` is not what largest_text() writes for this fingerprint.
std::optional<uint64_t> parse_largest(const std::string& text, const std::string& fingerprint) {
  const size_t last = text.rfind(' ');
  if (last == std::string::npos) return std::nullopt;
  const uint64_t largest = std::strtoull(text.c_str() + last, nullptr, 10);
  if (largest_text(fingerprint, largest) != text) return std::nullopt;
  return largest;
}

// Of all tokens: every one is read, unless the number was stored when they were.
Result<uint64_t> largest_token(const TokenDataset& dataset, const std::string& cache_dir,
                               const ProgressFn& progress) {
  const std::string name = "tokens-" + dataset.fingerprint() + ".txt";
  if (const auto text = cached_text(cache_dir, name))
    if (const auto stored = parse_largest(*text, dataset.fingerprint())) return *stored;
  uint64_t largest = 0;
  for (const TokenFile& file : dataset.token_files()) {
    if (progress) progress("checking " + file.path, 0, file.content().size());
    largest = std::max(largest, largest_of(file));
  }
  LOCKSTEP_RETURN_IF_ERROR(dataset.unchanged());
  keep_text(cache_dir, name, largest_text(dataset.fingerprint(), largest));
  return largest;
}

// The number of different tokens: what was asked for, if no token is beyond it.
Result<uint32_t> vocabulary(const TokenDataset& dataset, uint32_t asked,
                            const std::string& cache_dir, const ProgressFn& progress) {
  const bool is_text = dataset.format() == "text";
  if (is_text && asked == 0) return kTextVocabulary;
  const uint64_t limit = asked == 0 ? limits::kVocabulary : asked;
  LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t largest, largest_token(dataset, cache_dir, progress));
  if (largest >= limit) return first_beyond(dataset.token_files(), limit);
  return asked > 0 ? asked : static_cast<uint32_t>(largest) + 1;
}

// Of all that only say how many bytes a token has the same: they are the same tokens.
std::string shown_format(const std::string& format) {
  return format == "text" || format == "megatron" ? format : "tokens";
}

}  // namespace

Result<std::unique_ptr<Dataset>> open_token_dataset(const std::vector<std::string>& paths,
                                                    const std::string& format, const SampleCut& cut,
                                                    const std::string& cache_dir,
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
  auto dataset = std::make_unique<TokenDataset>(std::move(files), shown_format(format), cut.block);
  LOCKSTEP_RETURN_IF_ERROR(dataset->unchanged());  // since it was looked at for its fingerprint
  LOCKSTEP_ASSIGN_OR_RETURN(const uint32_t classes,
                            vocabulary(*dataset, cut.vocab, cache_dir, progress));
  dataset->set_classes(classes);
  return std::unique_ptr<Dataset>(std::move(dataset));
}

}  // namespace lockstep::data
