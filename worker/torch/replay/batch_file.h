// The batch of a replayed step as a safetensors file, for a debugger or a notebook:
//
//   images F32 (B, C, H, W) as the model saw them · labels, samples, positions, slots I64 (B)
//   loss F32 (B) · logits F32 (B, classes)
//
// If images are mixed with other images of their slot (mixup, cutmix), `images` are the mixed ones.
// The file then also has: other_labels I64 (B), of the other image · shares F32 (B), of the first
// label
//
// Without logits if the model gives losses.
//
// For sequences: tokens I64 (B, T) instead of images, labels (B, T), and no logits.
//
// Thread-safety: a free function.
#pragma once

#include <string>

#include "comm/base/status.h"
#include "worker/torch/replay/slot_look.h"

namespace lockstep {

// Replaces the file at `path` in one piece.
Status write_batch(const std::string& path, const LookedAt& seen, const data::SampleShape& shape,
                   uint32_t classes);

}  // namespace lockstep
