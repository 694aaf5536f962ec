// The index (PREFIX.idx) of an indexed dataset of Megatron-LM. PREFIX.bin holds the tokens, one
// sequence after another without anything between.
//
//     "MMIDIDX\0\0" | version (8) | type of a token (1) | sequences S (8) | documents D (8)
//     | tokens of each sequence (4 S) | where it begins in PREFIX.bin (8 S) | documents (8 D)
//
// Numbers are little-endian. D counts the entries of the last table: the sequence at which each
// document begins, and S at its end. Lockstep reads the tokens as one stream, as training on them
// does. The index gives the type of a token, proves that the two files belong together, and says
// where documents end for callers that ask.
//
// Bytes come from outside: they never decide how much memory the parser allocates, and the parser
// checks every sum and product. All errors are kBadData, one clause; the caller puts the file's
// name before it.
//
// Source: github.com/NVIDIA/Megatron-LM, megatron/core/datasets/indexed_dataset.py, _IndexWriter.
//
// Thread-safety: pure functions and values.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/base/status.h"

namespace lockstep::data {

struct MegatronIndex {
  uint32_t token_bytes = 0;  // 2 or 4
  bool is_signed = false;
  uint64_t sequences = 0;
  uint64_t tokens = 0;                                         // of all sequences
  uint64_t bin_bytes() const { return tokens * token_bytes; }  // <= limits::kDatasetBytes
};

bool is_megatron_index(std::span<const uint8_t> file);  // by its magic

// Reads the whole file once: 12 bytes a sequence.
Result<MegatronIndex> parse_megatron_index(std::span<const uint8_t> file);

// The place after the last token of each document, rising; the last is the number of all tokens.
// Checks everything again, since the file may have changed.
Result<std::vector<uint64_t>> megatron_documents(std::span<const uint8_t> file);

}  // namespace lockstep::data
