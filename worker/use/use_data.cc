#include "worker/use/use_data.h"

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <system_error>

#include "comm/base/file.h"
#include "comm/base/text/shell_word.h"
#include "data/base/hidden_names.h"
#include "data/formats/tables/csv_dataset.h"
#include "data/image/image_info.h"
#include "data/open/job_cut.h"
#include "data/open/open_dataset.h"
#include "data/read/cut_padding.h"
#include "data/transform/transform_list.h"
#include "data/view/run_data.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr char kAnyClass[] = "images";

// A directory with images next to each other: they have no classes.
bool holds_images(const std::string& path) {
  std::error_code error;
  for (fs::directory_iterator it(path, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (!data::is_hidden(name) && data::has_image_ending(name) && it->is_regular_file(error))
      return true;
  }
  return false;
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
  if ((place.is_unlabelled && !is_table) || (place.format == "auto" && holds_images(place.path))) {
    // One class, which nobody asks for: all images below the path.
    std::error_code error;
    const std::string all = cache + "/unlabelled";  // where nobody else writes while it is indexed
    const std::string link = all + "/" + kAnyClass;
    if (!fs::is_directory(place.path, error))
      return {Code::kNoInput, "there is no directory " + name_};
    fs::create_directory(all, error);
    fs::create_directory_symlink(fs::absolute(place.path), link, error);
    if (error) return {Code::kInternal, "cannot make " + link + ": " + error.message()};
    shown_for_ = link;
    set.set_path(all);
    set.set_format("image_folder");
  }
  auto opened = place.is_training
                    ? data::open_dataset(set, data::Split::kTrain, cache + "/cache", {}, cut)
                    : data::open_to_evaluate(set, cache + "/cache", {}, cut);
  if (!opened.is_ok()) return opened.status();
  dataset_ = std::move(opened).value();
  return Status::ok();
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
  const size_t at = shown_for_.empty() ? std::string::npos : name.find(shown_for_);
  if (at != std::string::npos) name.replace(at, shown_for_.size(), path_);
  return name;
}

Status UsedData::read(uint64_t begin, uint64_t end, UsedBatch* out) {
  const uint64_t count = end - begin;
  out->shape = reader_->shape();
  out->inputs.resize(count * reader_->input_bytes());
  out->labels.resize(count * out->shape.label_words());
  LOCKSTEP_RETURN_IF_ERROR(
      team_->read_range(*reader_, begin, end, out->inputs.data(), out->labels.data()));
  if (!out->shape.is_padded) return Status::ok();
  std::vector<uint64_t> samples(count);
  std::iota(samples.begin(), samples.end(), begin);
  data::cut_padding(*dataset_->as<data::Sequences>(), samples, out->inputs.data(),
                    out->labels.data(), &out->shape);
  return Status::ok();
}

}  // namespace lockstep
