// Which jobs want their slots as CUDA graphs (train.graph), and which jobs no graph can hold.
//
// Thread-safety: pure functions.
#pragma once

#include <string>

#include "comm/run/job/job.pb.h"
#include "comm/run/job/loss_kind.h"
#include "comm/run/job/predictions.h"

namespace lockstep {

inline bool wants_graphs(const wire::JobSpec& job) {
  const std::string& asked = job.train().graph();
  return asked == "on" || (asked != "off" && job.comm().numerics() == "fast");
}

// Why no graph can hold the job, as the end of a sentence; empty if one can.
inline std::string why_no_graphs(const wire::JobSpec& job) {
  if (is_from_file(job.model())) return "a model from a file may do what no graph can hold";
  if (job.data().documents() == "pad") return "padded documents make slots of many lengths";
  if (job.model().recompute()) return "model.recompute runs forwards inside of backward";
  // fp16 has no dropout kernel, and a mask comes from the host.
  if (job.model().dropout() > 0 && job.train().precision() == "fp16")
    return "dropout in fp16 takes its masks from the host";
  if (loss_kind(job.train()) != LossKind::kCrossEntropy)
    return "only the loss cross_entropy is computed by a kernel";
  return "";
}

}  // namespace lockstep
