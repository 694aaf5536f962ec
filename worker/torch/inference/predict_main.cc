#include "worker/torch/inference/predict_main.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "comm/base/file.h"
#include "worker/inference/prediction_rows.h"
#include "worker/torch/inference/use_words.h"

namespace lockstep {
namespace {

constexpr char kUnreadEnding[] = ".unread";

struct PredictWords {
  UseWords use;
  PartWords part;
  std::string kind;
  uint32_t top = 0;
  bool gives_logits = false;
};

// A file that is written piece by piece.
class PartFile {
 public:
  static Result<PartFile> create(const std::string& path) {
    PartFile file;
    file.path_ = path;
    file.file_.reset(std::fopen(path.c_str(), "wb"));
    if (file.file_ == nullptr) return file.failed();
    return file;
  }
  Status write(const std::string& text) {
    return std::fwrite(text.data(), 1, text.size(), file_.get()) == text.size() ? Status::ok()
                                                                                : failed();
  }
  Status flush() { return std::fflush(file_.get()) == 0 ? Status::ok() : failed(); }

 private:
  struct Closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  PartFile() = default;
  Status failed() const {
    return {Code::kInternal, "cannot write " + path_ + ": " + errno_text(errno) +
                                 "; make room for temporary files, or name a directory with room "
                                 "by TMPDIR"};
  }
  std::string path_;
  std::unique_ptr<std::FILE, Closer> file_;
};

Status refused(const std::string& what) {
  return {Code::kUsage, what};
}

std::string text_of(const std::vector<int64_t>& shape) {
  std::string text = "(";
  for (const int64_t size : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + ")";
}

// Chooses what to write for samples whose logits have this shape.
Result<PredictionContent> content_of(const PredictWords& words, const ModelAndData& opened,
                                     const std::vector<int64_t>& shape) {
  PredictionContent content;
  content.shape = shape;
  const auto& names = opened.trained.legend.class_names();
  content.class_names = {names.begin(), names.end()};
  const std::string gives = "the model gives logits " + text_of(shape) + " for a sample";
  if (words.gives_logits) {
    content.kind = PredictionKind::kLogits;
  } else if (shape.size() == 3) {
    content.kind = PredictionKind::kMap;
    if (opened.model->label_is_number() || (opened.model->gives_labels() && shape[0] > 1))
      return refused(gives +
                     ", of which no one class is right at a place; --logits writes them as they "
                     "are, to --out FILE.npy");
  } else if (shape.size() != 1) {
    return refused(gives +
                   ", which are neither of classes, (C), nor of maps of classes, "
                   "(C, H, W); --logits writes them as they are, to --out FILE.npy");
  } else if (opened.model->label_is_number() || (opened.model->own_loss() && shape[0] == 1)) {
    content.kind = PredictionKind::kNumber;
    if (shape[0] > 1)
      return refused(gives +
                     ", and a row has one number; --logits writes all of them, to --out "
                     "FILE.npy");
  }
  const bool is_npy = prediction_format(words.kind) == PredictionFormat::kNpy;
  if (content.kind == PredictionKind::kMap && !is_npy)
    return refused(gives + ", a map of classes, which has no place in rows of " + words.kind +
                   "; write it by --out FILE.npy");
  if (content.kind == PredictionKind::kLogits && !is_npy)
    return refused("--logits has no place in rows of " + words.kind +
                   "; write them by --out FILE.npy");
  const bool gives_labels = opened.model->gives_labels() && shape[0] > 1;
  if (content.kind == PredictionKind::kClasses && gives_labels)
    content.kind = PredictionKind::kLabels;
  if (content.kind != PredictionKind::kClasses && content.kind != PredictionKind::kLabels)
    return words.top == 0 ? Result<PredictionContent>(std::move(content))
                          : refused("--top is for classes of whole samples; leave it out");
  const uint32_t classes = opened.model->label_classes();
  content.classes = classes > 0 ? classes : static_cast<uint32_t>(shape[0]);
  content.top = words.top == 0 ? std::min(5u, content.classes) : words.top;
  if (content.top <= content.classes) return content;
  return refused("--top is " + std::to_string(words.top) + ", but the model has " +
                 std::to_string(content.classes) + " classes; give a number from 1 to that");
}

// Fills up to `wanted` samples with the last sample. Every sample has equally many values, one
// after another.
template <typename T>
void repeat_last(uint64_t samples, uint64_t wanted, std::vector<T>* values) {
  const size_t each = values->size() / samples;
  values->resize(wanted * each);
  for (size_t i = samples * each; i < values->size(); ++i) (*values)[i] = (*values)[i - each];
}

// Logits of batches, a batch after another.
class Logits {
 public:
  explicit Logits(const ModelAndData& opened) : opened_(opened) {}

  // The logits of samples [begin, end), by sample. Fills a batch that is too small for the model
  // with its last sample.
  Status compute(uint64_t begin, uint64_t end) {
    LOCKSTEP_RETURN_IF_ERROR(opened_.data->read_what_can_be(begin, end, &batch_));
    const uint64_t samples = end - begin;
    const uint64_t padded = opened_.model->padded(samples);
    const uint64_t labels = samples * batch_.shape.labels();
    std::vector<int64_t> records(batch_.labels.begin() + static_cast<std::ptrdiff_t>(labels),
                                 batch_.labels.end());
    batch_.labels.resize(labels);
    repeat_last(samples, padded, &batch_.inputs);
    repeat_last(samples, padded, &batch_.labels);
    repeat_last(samples, padded, &records);
    batch_.labels.insert(batch_.labels.end(), records.begin(), records.end());
    values_ =
        opened_.model->logits(batch_.shape, batch_.inputs.data(), batch_.labels.data(), padded);
    if (values_.dim() > 0 && values_.size(0) == static_cast<int64_t>(padded)) return Status::ok();
    return {Code::kConfig, "the model gives logits " + text_of(values_.sizes().vec()) + " for " +
                               std::to_string(padded) +
                               " samples; it needs to give them sample by sample"};
  }

  std::vector<int64_t> shape() const { return values_.sizes().slice(1).vec(); }
  std::span<const float> of(uint64_t sample) const {
    const auto values = static_cast<size_t>(values_.numel() / values_.size(0));
    return {values_.const_data_ptr<float>() + sample * values, values};
  }

 private:
  const ModelAndData& opened_;
  UsedBatch batch_;
  at::Tensor values_;
};

Status check_finite(std::span<const float> row, uint64_t sample, const UsedData& data) {
  if (std::all_of(row.begin(), row.end(), [](float value) { return std::isfinite(value); }))
    return Status::ok();
  return {Code::kBadData, "the model gives no finite numbers for sample " + std::to_string(sample) +
                              ", " + data.name_of(sample) +
                              "; look at it, or take another checkpoint"};
}

// A line a picture that could not be read, for the command that joins the parts.
Status write_unread(const PartWords& part, const UsedData& data) {
  nlohmann::json all = nlohmann::json::array();
  if (part.part == 0)
    for (const data::UnreadPicture& file : data.unread_files())
      all.push_back({{"path", file.path}, {"why", file.why}});
  for (const auto& [sample, file] : data.unread_samples())
    all.push_back({{"path", file.path}, {"why", file.why}});
  if (all.empty()) return Status::ok();
  return replace_file(part.out + kUnreadEnding,
                      all.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

Status predict(const PredictWords& words) {
  if (!prediction_format(words.kind)) return refused("predict: wrong --kind");
  ModelAndData opened;
  LOCKSTEP_RETURN_IF_ERROR(open_model_and_data(words.use, ModelUse::kPredict, &opened));
  const UsedData& data = *opened.data;
  if (data.dataset().shape().is_sequence())
    return refused(data.name() +
                   " has sequences of tokens, but predict is for images and rows; for text there "
                   "are lockstep generate and lockstep eval");
  const uint64_t samples = data.dataset().samples();
  Logits logits(opened);
  LOCKSTEP_RETURN_IF_ERROR(logits.compute(0, 1));  // for their shape
  const std::vector<int64_t> shape = logits.shape();
  LOCKSTEP_ASSIGN_OR_RETURN(PredictionContent content, content_of(words, opened, shape));
  const PredictionRows rows(*prediction_format(words.kind), std::move(content));
  LOCKSTEP_ASSIGN_OR_RETURN(PartFile file, PartFile::create(words.part.out));
  if (words.part.part == 0) LOCKSTEP_RETURN_IF_ERROR(file.write(rows.header(samples)));
  const auto use = [&](uint64_t begin, uint64_t end) -> Status {
    LOCKSTEP_RETURN_IF_ERROR(logits.compute(begin, end));
    if (logits.shape() != shape)
      return {Code::kConfig, "the model gives logits " + text_of(logits.shape()) + " for sample " +
                                 std::to_string(begin) + " and " + text_of(shape) +
                                 " for the first; predict needs the same for all"};
    std::string text;
    for (uint64_t sample = begin; sample < end; ++sample) {
      if (data.unread_samples().contains(sample)) {
        rows.add_unread(&text);
        continue;
      }
      const std::span<const float> row = logits.of(sample - begin);
      LOCKSTEP_RETURN_IF_ERROR(check_finite(row, sample, data));
      rows.add(sample, data.name_of(sample), row, &text);
    }
    return file.write(text);
  };
  LOCKSTEP_RETURN_IF_ERROR(for_each_batch(words.part, samples, opened.batch, use));
  LOCKSTEP_RETURN_IF_ERROR(file.flush());
  return write_unread(words.part, data);
}

}  // namespace

int predict_main(int argc, char** argv) {
  PredictWords words;
  CLI::App app("Predicts a part of the samples; started by `lockstep predict`.", "predict");
  add_use_words(app, words.use);
  add_part_words(app, words.part);
  app.add_option("--kind", words.kind, "csv, jsonl or npy")->required();
  app.add_option("--top", words.top, "likeliest classes of a row; 0: at most 5");
  app.add_flag("--logits", words.gives_logits, "logits as the model gives them");
  return run_use_command(app, argc, argv, "the model cannot compute this",
                         [&] { return predict(words); });
}

}  // namespace lockstep
