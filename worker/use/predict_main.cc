#include "worker/use/predict_main.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <span>
#include <string>

#include "comm/base/file.h"
#include "worker/use/prediction_rows.h"
#include "worker/use/use_words.h"

namespace lockstep {
namespace {

constexpr std::chrono::milliseconds kBetweenWords{500};  // about the progress

struct PredictWords {
  UseWords use;
  std::string kind;
  uint32_t top = 0;
  uint64_t part = 0;
  uint64_t parts = 1;
  std::string out;
  std::string progress;
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

Status check_words(const PredictWords& words, const ModelAndData& opened) {
  const data::Dataset& dataset = opened.data->dataset();
  if (dataset.shape().is_sequence())
    return {Code::kUsage, opened.data->name() +
                              " has sequences of tokens, but predict is for "
                              "images and rows; for text there are lockstep "
                              "generate and lockstep eval"};
  if (words.top == 0 || words.top > opened.model->classes())
    return {Code::kUsage, "--top is " + std::to_string(words.top) + ", but the model has " +
                              std::to_string(opened.model->classes()) +
                              " classes; give a number from 1 to that"};
  return Status::ok();
}

Status predict(const PredictWords& words) {
  ModelAndData opened;
  LOCKSTEP_RETURN_IF_ERROR(open_model_and_data(words.use, &opened));
  PredictWords given = words;
  if (given.top == 0) given.top = std::min(5u, opened.model->classes());
  LOCKSTEP_RETURN_IF_ERROR(check_words(given, opened));
  const uint64_t samples = opened.data->dataset().samples();
  const uint64_t batches = (samples + opened.batch - 1) / opened.batch;
  const uint32_t classes = opened.model->classes();
  const auto& names = opened.trained.legend.class_names();
  const PredictionRows rows(*prediction_format(given.kind), classes, given.top,
                            {names.begin(), names.end()});
  LOCKSTEP_ASSIGN_OR_RETURN(PartFile file, PartFile::create(words.out));
  if (words.part == 0) LOCKSTEP_RETURN_IF_ERROR(file.write(rows.header(samples)));
  const uint64_t end = batches * (words.part + 1) / words.parts;
  UsedBatch batch;
  auto next_word = std::chrono::steady_clock::now() + kBetweenWords;
  for (uint64_t i = batches * words.part / words.parts; i < end; ++i) {
    const uint64_t begin = i * opened.batch;
    const uint64_t count = std::min(opened.batch, samples - begin);
    LOCKSTEP_RETURN_IF_ERROR(opened.data->read(begin, begin + count, &batch));
    const at::Tensor logits = opened.model->logits(batch.shape, batch.inputs.data(), count);
    const float* values = logits.const_data_ptr<float>();
    std::string text;
    for (uint64_t sample = 0; sample < count; ++sample) {
      const std::span<const float> row(values + sample * classes, classes);
      if (!std::all_of(row.begin(), row.end(), [](float value) { return std::isfinite(value); }))
        return {Code::kBadData, "the model gives no finite numbers for sample " +
                                    std::to_string(begin + sample) + ", " +
                                    opened.data->name_of(begin + sample) +
                                    "; look at it, or take another checkpoint"};
      rows.add(begin + sample, opened.data->name_of(begin + sample), row, &text);
    }
    LOCKSTEP_RETURN_IF_ERROR(file.write(text));
    const auto now = std::chrono::steady_clock::now();
    if (words.progress.empty() || now < next_word) continue;
    next_word = now + kBetweenWords;
    const uint64_t done = begin + count - batches * words.part / words.parts * opened.batch;
    LOCKSTEP_RETURN_IF_ERROR(
        replace_file(words.progress, std::to_string(done) + " " + std::to_string(samples)));
  }
  return file.flush();
}

}  // namespace

int predict_main(int argc, char** argv) {
  PredictWords words;
  CLI::App app("Predicts a part of the samples; started by `lockstep predict`.", "predict");
  add_use_words(app, words.use);
  app.add_option("--kind", words.kind, "csv, jsonl or npy")->required();
  app.add_option("--top", words.top, "likeliest classes of a row; 0: at most 5");
  app.add_option("--part", words.part)->required();
  app.add_option("--parts", words.parts)->required();
  app.add_option("--out", words.out, "file of the part")->required();
  app.add_option("--progress", words.progress, "file that says how far it is");
  return run_use_command(app, argc, argv, [&] {
    if (!prediction_format(words.kind) || words.parts == 0 || words.part >= words.parts)
      return Status(Code::kUsage, "predict: wrong options");
    return predict(words);
  });
}

}  // namespace lockstep
