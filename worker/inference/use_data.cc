#include "worker/inference/use_data.h"

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "comm/base/file.h"
#include "comm/base/text/shell_word.h"
#include "data/base/hidden_names.h"
#include "data/formats/images/stem_directory.h"
#include "data/formats/tables/csv_dataset.h"
#include "data/image/image_info.h"
#include "data/loader/cut_padding.h"
#include "data/open/job_sample_cut.h"
#include "data/open/open_dataset.h"
#include "data/transform/transform_list.h"
#include "data/view/run_data.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr char kImages[] = "images";  // the directory of the images, where a job names none

// A picture, or a directory with images next to each other: they have no classes.
bool holds_images(const std::string& path) {
  std::error_code error;
  if (fs::is_regular_file(path, error)) return data::has_image_ending(path);
  for (fs::directory_iterator it(path, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (!data::is_hidden(name) && data::has_image_ending(name) && it->is_regular_file(error))
      return true;
  }
  return false;
}

// A model that was trained with masks has them in the shape of its samples. Pictures without masks
// get the same shape, and no prediction reads the missing masks.
data::SampleShape with_lacking_targets(data::SampleShape shape, const wire::DataSpec& keys) {
  std::vector<data::FieldSpec> fields;
  if (shape.fields != nullptr) fields = shape.fields->specs();
  const bool has_targets =
      shape.fields != nullptr && shape.fields->find(data::FieldRole::kTarget).has_value();
  const std::string& format = keys.train().format();
  if ((format != "image_mask" && format != "webdataset") || has_targets || keys.targets().empty() ||
      !shape.has_bytes())
    return shape;
  const auto is_file = [](const std::string& name) { return data::has_image_ending("." + name); };
  const bool are_members = std::ranges::any_of(keys.targets(), is_file);  // of WebDataset
  for (const std::string& name : keys.targets()) {
    data::FieldSpec field{.name = name, .type = data::FieldType::kI64, .is_label = true};
    if (!are_members || is_file(name))
      field = {.name = name,
               .type = data::FieldType::kU8,
               .dims = {shape.height, shape.width},
               .follows_image = true};
    fields.push_back(std::move(field));
  }
  shape.fields = std::make_shared<const data::FieldList>(std::move(fields));
  return shape;
}

}  // namespace

UsedData::~UsedData() {
  std::error_code ignored;
  team_.reset();  // they read the data set
  reader_.reset();
  dataset_.reset();
  if (!scratch_.empty()) fs::remove_all(scratch_, ignored);
}

Result<std::string> UsedData::make_scratch(const std::string& where) {
  std::error_code error;
  const std::string parent = where.empty() ? fs::temp_directory_path(error).string() : where;
  std::string path = parent + "/lockstep-use-XXXXXX";
  if (error || ::mkdtemp(path.data()) == nullptr)
    return Status(Code::kConfig, "cannot make a directory for temporary files: " +
                                     (error ? error.message() : errno_text(errno)) +
                                     "; name one with room by TMPDIR");
  scratch_ = path;
  return scratch_;
}

Result<std::unique_ptr<UsedData>> UsedData::open(const TrainedModel& model,
                                                 const UsedDataPlace& place) {
  std::unique_ptr<UsedData> made(new UsedData());
  LOCKSTEP_RETURN_IF_ERROR(made->open_dataset_at(model, place));
  LOCKSTEP_RETURN_IF_ERROR(made->make_reader(model, place));
  made->model_shape_ = with_lacking_targets(made->dataset_->shape(), model.job.data());
  return made;
}

Status UsedData::open_dataset_at(const TrainedModel& model, const UsedDataPlace& place) {
  const wire::DataSpec& keys = model.job.data();
  if (place.path.empty()) {
    if (model.is_directory)
      return {Code::kUsage, model.place +
                                " is not a run, so it has no data of its own; name the "
                                "data to evaluate on"};
    name_ = "the run's evaluation data";
    LOCKSTEP_ASSIGN_OR_RETURN(
        data::RunData run,
        data::open_run_data(model.job, data::cache_directory(keys, model.place)));
    if (run.eval == nullptr)
      return {Code::kUsage, "the run has no evaluation data; name the data to evaluate on"};
    dataset_ = std::move(run.eval);
    return Status::ok();
  }
  path_ = place.path;
  name_ = shell_word(place.path);
  wire::DatasetSpec set;
  set.set_path(place.path);
  set.set_format(place.format);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string cache, make_scratch(place.scratch));
  data::SampleCut cut = data::sample_cut(model.job);
  const bool is_table =
      place.is_unlabelled && (place.format == "csv" || data::has_csv_ending(place.path));
  cut.columns.may_lack_answers = lacks_answers_ = is_table;
  const bool has_inputs = cut.columns.inputs.size() > 1;  // besides the picture
  if (!has_inputs &&
      ((place.is_unlabelled && !is_table) || (place.format == "auto" && holds_images(place.path))))
    return open_pictures(place.path, set, cut, /*looks=*/false);
  auto opened = place.is_training
                    ? data::open_dataset(set, data::Split::kTrain, cache + "/cache", {}, cut)
                    : data::open_to_evaluate(set, cache + "/cache", {}, cut);
  if (!opened.is_ok()) {
    const Status without = open_without_targets(place, set, cut);
    return without.is_ok() ? without : opened.status();
  }
  dataset_ = std::move(opened).value();
  return Status::ok();
}

// The pictures that lie at `path` or below. Masks and labels are not looked for.
Status UsedData::open_pictures(const std::string& path, const wire::DatasetSpec& set,
                               const data::SampleCut& cut, bool looks) {
  std::error_code error;
  fs::remove_all(scratch_ + "/links", error);
  fs::create_directory(scratch_ + "/links", error);
  path_ = path;
  LOCKSTEP_ASSIGN_OR_RETURN(pictures_, data::link_pictures(path, scratch_ + "/links", looks));
  wire::DatasetSpec linked = set;
  linked.set_path(pictures_.folder);
  linked.set_format("image_folder");
  data::SampleCut plain = cut;
  plain.columns = {};
  auto opened = data::open_dataset(linked, data::Split::kEval, scratch_ + "/cache", {}, plain);
  const bool may_be_broken =
      opened.status().code() == Code::kBadData || opened.status().code() == Code::kNoInput;
  if (!opened.is_ok() && may_be_broken && !looks) {
    const Status rest = open_pictures(path, set, cut, /*looks=*/true);
    return rest.is_ok() || !pictures_.unread.empty() ? rest : told(opened.status());
  }
  if (!opened.is_ok()) return told(opened.status());
  dataset_ = std::move(opened).value();
  return Status::ok();
}

// For predictions, from a directory that may lack the masks of its pictures.
Status UsedData::open_without_targets(const UsedDataPlace& place, const wire::DatasetSpec& set,
                                      data::SampleCut cut) {
  const data::ColumnNames& columns = cut.columns;
  std::error_code error;
  if (!place.is_to_predict || columns.targets.empty() || !fs::is_directory(place.path, error))
    return {Code::kUsage, "there are no targets to leave out"};
  const data::Split split = place.is_training ? data::Split::kTrain : data::Split::kEval;
  const std::string name = columns.inputs.empty() ? kImages : columns.inputs.front();
  const auto images = data::find_stem_directory(place.path, name, split);
  if (columns.inputs.size() <= 1)
    return open_pictures(images.is_ok() ? *images : place.path, set, cut, /*looks=*/false);
  cut.columns.targets.clear();
  wire::DatasetSpec masked = set;
  masked.set_format("image_mask");
  LOCKSTEP_ASSIGN_OR_RETURN(dataset_,
                            data::open_dataset(masked, split, scratch_ + "/cache", {}, cut));
  return Status::ok();
}

Status UsedData::told(const Status& status) const {
  if (status.is_ok()) return status;
  std::string text = status.message();
  const std::string& link = pictures_.shown_for;
  for (const std::string& from : {link, pictures_.folder}) {
    size_t at = 0;
    while (!from.empty() && (at = text.find(from, at)) != std::string::npos) {
      text.replace(at, from.size(), path_);
      at += path_.size();
    }
  }
  return {status.code(), text};
}

Status UsedData::make_reader(const TrainedModel& model, const UsedDataPlace& place) {
  const auto& words = model.job.data().transforms();
  const std::vector<std::string> transforms(words.begin(), words.end());
  const data::SampleShape& shape = dataset_->shape();
  std::vector<data::ChannelStatistics> statistics;
  for (int i = 0; i < model.legend.mean_size(); ++i)
    statistics.push_back(
        {static_cast<double>(model.legend.mean(i)), static_cast<double>(model.legend.std(i))});
  LOCKSTEP_ASSIGN_OR_RETURN(const data::TransformList list, data::parse_transforms(transforms));
  if (!shape.is_sequence()) {
    if (list.normalizes && statistics.size() != shape.channels)
      return {Code::kBadData, name_ + " has " + std::to_string(shape.channels) +
                                  (shape.is_row ? " columns" : " channels") +
                                  ", but the model was trained on " +
                                  (statistics.empty() ? "data whose means were not kept"
                                                      : std::to_string(statistics.size())) +
                                  "; name data of the kind that it was trained on"};
    if (!list.normalizes) statistics.resize(shape.channels, {0, 1});
  }
  LOCKSTEP_ASSIGN_OR_RETURN(data::SampleReader reader,
                            data::SampleReader::create(*dataset_, transforms, statistics));
  reader_.emplace(std::move(reader));
  LOCKSTEP_ASSIGN_OR_RETURN(
      team_, data::SampleTeam::start(data::decode_threads(*dataset_, place.threads, 1),
                                     data::Augmenter()));
  return Status::ok();
}

std::string UsedData::name_of(uint64_t sample) const {
  std::string name = dataset_->name_of(sample);
  const std::string& link = pictures_.shown_for;
  const size_t at = link.empty() ? std::string::npos : name.find(link);
  if (at != std::string::npos) name.replace(at, link.size(), path_);
  return name;
}

Status UsedData::read(uint64_t begin, uint64_t end, UsedBatch* out) {
  return told(read_batch(begin, end, out));
}

Status UsedData::read_what_can_be(uint64_t begin, uint64_t end, UsedBatch* out) {
  const Status whole = read_batch(begin, end, out);
  if (whole.is_ok() || !dataset_->shape().has_bytes()) return told(whole);
  const auto is_of_a_picture = [](const Status& status) {
    return status.code() == Code::kBadData || status.code() == Code::kNoInput;
  };
  if (!is_of_a_picture(whole)) return told(whole);
  const uint64_t inputs = reader_->input_bytes();
  const uint64_t labels = out->shape.labels();
  const uint64_t record_words = out->shape.label_words() - labels;
  std::vector<int64_t> words(labels + record_words);
  for (uint64_t sample = begin; sample < end; ++sample) {
    const uint64_t i = sample - begin;
    std::byte* const input = out->inputs.data() + i * inputs;
    const Status one = team_->read_range(*reader_, sample, sample + 1, input, words.data());
    if (!one.is_ok() && !is_of_a_picture(one)) return told(one);
    if (!one.is_ok()) {
      unread_samples_.try_emplace(sample,
                                  data::UnreadPicture{name_of(sample), told(one).message()});
      std::fill_n(input, inputs, std::byte{0});
      std::ranges::fill(words, 0);
    }
    std::copy_n(words.begin(), labels,
                out->labels.begin() + static_cast<std::ptrdiff_t>(i * labels));
    const uint64_t record = (end - begin) * labels + i * record_words;
    std::copy_n(words.begin() + static_cast<std::ptrdiff_t>(labels), record_words,
                out->labels.begin() + static_cast<std::ptrdiff_t>(record));
  }
  return Status::ok();
}

Status UsedData::read_batch(uint64_t begin, uint64_t end, UsedBatch* out) {
  const uint64_t count = end - begin;
  out->shape = reader_->shape();
  out->inputs.resize(count * reader_->input_bytes());
  out->labels.resize(count * out->shape.label_words());
  LOCKSTEP_RETURN_IF_ERROR(
      team_->read_range(*reader_, begin, end, out->inputs.data(), out->labels.data()));
  data::cut_padding(*dataset_, begin, end, out->inputs.data(), out->labels.data(), &out->shape);
  return Status::ok();
}

}  // namespace lockstep
