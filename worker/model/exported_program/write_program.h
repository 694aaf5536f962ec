// Writes an exported program again with other weights, so that torch.export.load() opens it.
//
// Thread-safety: free functions.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "comm/base/status.h"

namespace lockstep::exported {

// The new values of a tensor, by any of its names, in row-major order: its elements times the bytes
// of its dtype. An empty span leaves the tensor as it is. The writer asks for parameters and
// buffers, and never for constants.
using NewWeights = std::function<Result<std::span<const uint8_t>>(const std::string& name)>;

// `from`: the program's file. `to`: a new file, which appears whole or not at all; an old one of
// this name is replaced. `is_evaluation`: the graph is switched to evaluation (evaluation.h), and
// its step counters are left out; else the graph stays as it is. Ask first whether the switched
// graph is right (a program for evaluation is written with `is_evaluation` false).
// kBadData or kConfig if `from` cannot be read (read_program.h) or weights have another size;
// kInternal if `to` cannot be written; errors of `weights` as they are.
Status write_program(const std::string& from, const std::string& to, bool is_evaluation,
                     const NewWeights& weights);

}  // namespace lockstep::exported
