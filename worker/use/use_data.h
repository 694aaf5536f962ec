// The data that a trained model is used on, read as its run read evaluation data: the same
// transforms, the same constants.
//
// Errors: of open_dataset(); kBadData if the data cannot be normalised as the run's were.
//
// Thread-safety: one thread at a time.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/dataset/dataset.h"
#include "data/read/sample_reader.h"
#include "data/read/sample_team.h"
#include "worker/use/trained_model.h"

namespace lockstep {

struct UsedDataPlace {
  std::string path;  // empty: the run's own evaluation data
  std::string format = "auto";
  bool is_training = false;    // the training part of a path that has both
  bool is_unlabelled = false;  // images of any directory below `path`, or rows without answers
  uint32_t threads = 0;        // that decode; 0: by the machine
  std::string scratch = {};    // a directory for temporary files; empty: the system's
};

// One batch, as a model takes it.
struct UsedBatch {
  data::SampleShape shape;
  std::vector<std::byte> inputs;
  std::vector<int64_t> labels;  // SampleShape::label_words() of each sample
};

class UsedData {
 public:
  static Result<std::unique_ptr<UsedData>> open(const TrainedModel& model,
                                                const UsedDataPlace& place);
  ~UsedData();
  UsedData(const UsedData&) = delete;
  UsedData& operator=(const UsedData&) = delete;

  const data::Dataset& dataset() const { return *dataset_; }
  const std::string& name() const { return name_; }
  bool has_labels() const { return shown_for_.empty() && !lacks_answers_; }
  // Of a sample, for people.
  std::string name_of(uint64_t sample) const;

  // Samples [begin, end).
  Status read(uint64_t begin, uint64_t end, UsedBatch* out);

 private:
  UsedData() = default;
  Status open_dataset_at(const TrainedModel& model, const UsedDataPlace& place);
  Status make_reader(const TrainedModel& model, const UsedDataPlace& place);
  Result<std::string> make_scratch(const std::string& where);

  std::string path_;     // as the user gave it
  std::string name_;     // for messages
  std::string scratch_;  // removed at the end; empty: none
  bool lacks_answers_ = false;
  std::string shown_for_;  // the part of names that is not the user's
  std::unique_ptr<data::Dataset> dataset_;
  std::optional<data::SampleReader> reader_;
  std::unique_ptr<data::SampleTeam> team_;
};

}  // namespace lockstep
