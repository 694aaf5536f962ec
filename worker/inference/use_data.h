// The data that a trained model is used on, read as its run read evaluation data: the same
// transforms, the same constants.
//
// Pictures for predictions need neither classes nor masks: they may be one file, or a directory of
// them. Pictures that cannot be read are left out (unread_files()), or are zeros
// (unread_samples()).
//
// Errors: from open_dataset() and link_pictures(), with the user's names; kBadData if the data
// cannot be normalised as the run's were.
//
// Thread-safety: one thread at a time.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/dataset/dataset.h"
#include "data/dataset/sample_cut.h"
#include "data/loader/sample_reader.h"
#include "data/loader/sample_team.h"
#include "data/open/loose_pictures.h"
#include "worker/inference/trained_model.h"

namespace lockstep {

struct UsedDataPlace {
  std::string path;  // empty: the run's own evaluation data
  std::string format = "auto";
  bool is_training = false;    // the training part of a path that has both
  bool is_unlabelled = false;  // images of any directory below `path`, or rows without answers
  bool is_to_predict = false;  // targets do not matter
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
  bool has_labels() const { return pictures_.shown_for.empty() && !lacks_answers_; }
  // As a model takes them: the dataset's, with the targets that pictures lack.
  const data::SampleShape& model_shape() const { return model_shape_; }
  // The name of a sample, for people.
  std::string name_of(uint64_t sample) const;

  // Samples [begin, end).
  Status read(uint64_t begin, uint64_t end, UsedBatch* out);
  // The same; a picture that cannot be read is zeros, and stands in unread_samples().
  Status read_what_can_be(uint64_t begin, uint64_t end, UsedBatch* out);
  const std::map<uint64_t, data::UnreadPicture>& unread_samples() const { return unread_samples_; }
  // Files that are no samples, because they cannot be read.
  const std::vector<data::UnreadPicture>& unread_files() const { return pictures_.unread; }

 private:
  UsedData() = default;
  Status open_dataset_at(const TrainedModel& model, const UsedDataPlace& place);
  Status open_pictures(const std::string& path, const wire::DatasetSpec& set,
                       const data::SampleCut& cut, bool looks);
  Status open_without_targets(const UsedDataPlace& place, const wire::DatasetSpec& set,
                              data::SampleCut cut);
  Status read_batch(uint64_t begin, uint64_t end, UsedBatch* out);
  // The status with the user's names for linked files.
  Status told(const Status& status) const;
  Status make_reader(const TrainedModel& model, const UsedDataPlace& place);
  Result<std::string> make_scratch(const std::string& where);

  std::string path_;     // as the user gave it
  std::string name_;     // for messages
  std::string scratch_;  // removed at the end; empty: none
  bool lacks_answers_ = false;
  data::LoosePictures pictures_;  // shown_for: empty unless pictures were linked
  data::SampleShape model_shape_;
  std::map<uint64_t, data::UnreadPicture> unread_samples_;
  std::unique_ptr<data::Dataset> dataset_;
  std::optional<data::SampleReader> reader_;
  std::unique_ptr<data::SampleTeam> team_;
};

}  // namespace lockstep
