// A batch of the job's own data in the hands of Python: keeps its memory, and tells its tensors.
//
// Thread-safety: immutable; may be deleted on any thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/run/job/job.pb.h"
#include "data/dataset/batch_tensors.h"
#include "data/loader/batch.h"
#include "worker/script/core.h"

// The C interface's type (core.h).
struct ls_batch_handle {
 public:
  ls_batch_handle(const lockstep::wire::DataSpec& job,
                  std::shared_ptr<const lockstep::data::Batch> batch);

  // Valid as long as the handle.
  ls_batch view() { return {this, fields_.data(), fields_.size()}; }

 private:
  void add(std::string name, ls_field_role role, lockstep::data::BatchTensor tensor);

  const std::shared_ptr<const lockstep::data::Batch> batch_;
  std::vector<std::string> names_;  // of fields_, as are the tensors
  std::vector<lockstep::data::BatchTensor> tensors_;
  std::vector<ls_field> fields_;
};
