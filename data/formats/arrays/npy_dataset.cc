#include "data/formats/arrays/npy_dataset.h"

#include <algorithm>
#include <utility>

#include "comm/base/limits.h"
#include "data/base/file_errors.h"
#include "data/files/mapped_file.h"
#include "data/formats/arrays/image_dataset.h"

namespace lockstep::data {
namespace {

Status check_labels(const NpyHeader& header) {
  if (!header.is_integer())
    return bad("holds " + header.type_text() +
               ", but labels are whole numbers; write it again: numpy.save(FILE, "
               "a.astype(\"int64\"))");
  const auto entries =
      std::count_if(header.dims.begin(), header.dims.end(), [](uint64_t n) { return n != 1; });
  if (header.dims.size() == 2 && header.dims[0] > 1 && header.dims[1] > 1)
    return bad(
        "has the shape " + header.shape_text() +
        ", but labels have one dimension; if a 1 in each row tells the class (one-hot), write "
        "its place: numpy.save(FILE, a.argmax(1)); else choose one column, such as a[:, 0]");
  if (header.dims.empty() || entries > 1 || (entries == 1 && header.dims[0] == 1))
    return bad("has the shape " + header.shape_text() +
               ", but labels have one dimension; write it again: numpy.save(FILE, a.reshape(-1))");
  return Status::ok();
}

}  // namespace

Result<bool> npy_channels_last(const NpyHeader& header, const std::string& axes) {
  if (axes == "npy_nchw" || axes == "npy_nhwc") return axes == "npy_nhwc";
  const auto is_usual = [](uint64_t n) { return n >= 1 && n <= kUsualChannels; };
  if (is_usual(header.dims[1]) != is_usual(header.dims[3])) return is_usual(header.dims[3]);
  return Status(Code::kUsage,
                "has the shape " + header.shape_text() +
                    ", which does not tell the axis of the channels; set data.train.format to "
                    "npy_nchw for (N, C, H, W), or to npy_nhwc for (N, H, W, C)");
}

Result<SampleShape> npy_image_shape(const NpyHeader& header, const std::string& axes) {
  if (header.kind != 'u' || header.element_bytes != 1)
    return bad("holds " + header.type_text() +
               ", but images are uint8, 0 to 255; write it again: numpy.save(FILE, "
               "a.astype(\"uint8\")), scaled if need be, or name floats in data.inputs");
  const std::vector<uint64_t>& dims = header.dims;
  if (dims.size() != 3 && dims.size() != 4)
    return bad("has the shape " + header.shape_text() +
               ", but images have (N, H, W), (N, C, H, W) or (N, H, W, C)");
  if (dims[0] == 0) return bad("holds no sample");
  if (header.content_bytes == 0) return bad("holds images of size 0 " + header.shape_text());
  const uint64_t sample_bytes = header.content_bytes / dims[0];
  // So every dimension fits 32 bits, too.
  if (sample_bytes > limits::kSampleBytes)
    return bad("holds images of " + std::to_string(sample_bytes) + " bytes, the limit is " +
               std::to_string(limits::kSampleBytes));
  SampleShape shape;
  bool is_last = false;
  if (dims.size() == 4) {
    LOCKSTEP_ASSIGN_OR_RETURN(is_last, npy_channels_last(header, axes));
  }
  const size_t rows = dims.size() == 4 && !is_last ? 2 : 1;
  shape.height = static_cast<uint32_t>(dims[rows]);
  shape.width = static_cast<uint32_t>(dims[rows + 1]);
  shape.channels = static_cast<uint32_t>(sample_bytes / (dims[rows] * dims[rows + 1]));
  shape.channels_last = is_last && shape.channels > 1;  // one channel: both are the same
  return shape;
}

namespace {

constexpr size_t kImageDims = 4;  // with the samples; a volume has one more

// Where neither axis has a usual number of channels, it is the first, as in PyTorch.
Result<bool> are_channels_last(const NpyHeader& header, const std::string& axes) {
  if (header.dims.size() < kImageDims) return false;
  const bool is_plain =
      axes != "npy_nhwc" && header.dims[1] > kUsualChannels && header.dims[3] > kUsualChannels;
  if (is_plain) return false;
  return npy_channels_last(header, axes);
}

}  // namespace

bool is_float_input(const NpyHeader& header) {
  const uint32_t bytes = header.element_bytes;
  return header.kind == 'f' && (bytes == 2 || bytes == 4 || bytes == 8) &&
         header.dims.size() >= kImageDims - 1 && header.dims.size() <= kImageDims + 1;
}

Result<SampleShape> float_input_shape(const NpyHeader& header, const std::string& axes) {
  std::vector<uint64_t> dims(header.dims.begin() + 1, header.dims.end());
  const uint64_t values = header.content_bytes / header.dims[0] / header.element_bytes;
  // As stored and as a model gets them. So every dimension fits 32 bits, too.
  const uint64_t each = std::max<uint64_t>(header.element_bytes, sizeof(float));
  if (values > limits::kSampleBytes / each)
    return bad("holds samples of " + std::to_string(values) + " values, the limit is " +
               std::to_string(limits::kSampleBytes / each));
  LOCKSTEP_ASSIGN_OR_RETURN(const bool is_last, are_channels_last(header, axes));
  if (dims.size() < kImageDims - 1) dims.insert(dims.begin(), 1);
  if (is_last) std::rotate(dims.begin(), dims.end() - 1, dims.end());
  SampleShape shape;
  shape.channels = static_cast<uint32_t>(dims[0]);
  if (dims.size() == kImageDims) shape.depth = static_cast<uint32_t>(dims[1]);
  shape.height = static_cast<uint32_t>(dims[dims.size() - 2]);
  shape.width = static_cast<uint32_t>(dims[dims.size() - 1]);
  shape.channels_last = is_last && shape.channels > 1;  // one channel: both are the same
  shape.float_bytes = header.element_bytes;
  return shape;
}

Result<std::unique_ptr<Dataset>> make_npy_dataset(NpyArray images, NpyArray labels,
                                                  const std::string& format,
                                                  const std::string& axes,
                                                  const std::string& cache_dir,
                                                  const ProgressFn& progress) {
  const auto shape = npy_image_shape(images.header, axes);
  if (!shape.is_ok()) return about(images.name, shape.status());
  if (const Status status = check_labels(labels.header); !status.is_ok())
    return about(labels.name, status);
  const uint64_t samples = images.header.dims[0];
  if (samples != labels.header.dims[0])
    return bad(images.name + " holds " + std::to_string(samples) + " images, but " + labels.name +
               " holds " + std::to_string(labels.header.dims[0]) +
               " labels; they do not belong together");
  const std::span<const uint8_t> content(images.content(), images.header.content_bytes);
  ImageFiles files{format, shape.value(), {images.path}, {}, {}, 0, ""};
  if (labels.path != images.path) files.paths.push_back(labels.path);
  ImageRun run;
  run.content = content;
  run.first = content.data();
  run.stride_bytes = shape->elements();
  run.samples = samples;
  run.path = images.path;
  run.is_inflated = images.is_inflated;
  run.labels_path = labels.name;
  run.label = [header = labels.header, stored = labels.content()](uint64_t i) {
    return npy_integer(header, stored, i);
  };
  run.files = 2;
  files.runs.push_back(std::move(run));
  files.files.push_back(std::move(images.file));
  files.files.push_back(std::move(labels.file));
  return make_image_dataset(std::move(files), cache_dir, progress);
}

}  // namespace lockstep::data
