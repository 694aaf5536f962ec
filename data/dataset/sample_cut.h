// Thread-safety: values.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "data/base/column_names.h"
#include "data/image/frame.h"
#include "data/source/base/cache_options.h"

namespace lockstep::source {
class RemoteFiles;
}

namespace lockstep::data {

// How the documents of a data set of tokens become sequences.
enum class Documents {
  kStream,  // documents one after another, cut wherever a sequence ends
  kPad,     // each document by itself; after its end there is nothing to predict
  kPack,    // several documents in a sequence; none sees the others
};

// Everything in a job that decides how files become samples.
struct SampleCut {
  uint32_t block = 0;              // tokens of a sequence
  uint32_t vocab = 0;              // different tokens; 0: as many as the files have
  ImageFrame frame{};              // of images
  source::CacheOptions cache{};    // for remote data
  std::string tokenizer{};         // for text (data/bpe/vocabulary.h); empty: every byte is a token
  std::string tokenizer_sha256{};  // in hex; empty: accept any tokenizer
  Documents documents = Documents::kStream;
  std::optional<uint64_t> document_end{};  // the token that ends a document; empty: files say
  bool by_length = false;                  // kPad: numbers samples from short to long
  ColumnNames columns{};                   // of formats that have columns
  // Remote data, once find_place() has opened them.
  std::shared_ptr<source::RemoteFiles> far{};
};

}  // namespace lockstep::data
