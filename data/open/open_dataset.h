// Opens the files of a data set, of any format.
//
// ERRORS of open_dataset(), each one sentence that names the file and says what to do:
//   kNoInput  the directory or a file of the pair is not there
//   kBadData  truncated, corrupt or not what it says it is; counts that differ; no sample
//   kUsage    a format that is not known, or that the files do not tell
//   kInternal the cache cannot be written, or the machine failed to read
//
// Thread-safety: a free function; any thread and process.
#pragma once

#include <memory>
#include <string>

#include "comm/base/status.h"
#include "data/base/progress.h"
#include "data/base/split.h"
#include "data/dataset/dataset.h"
#include "data/dataset/sample_cut.h"

namespace lockstep::wire {
class DatasetSpec;
}

namespace lockstep::data {

// By spec.format, one of kDataFormats (comm/wire/data_formats.h):
//
//   auto      as detect_format() finds it
//   idx       a directory with the standard IDX files (train-images..., train-labels... for kTrain,
//             t10k-... for kEval; gzipped or not), or with exactly one pair of images and labels of
//             whatever name, which then serves either split (idx_pair.h)
//   cifar10, cifar100  the directory of the binary version (cifar_files.h)
//   npy       a directory with NumPy arrays of images and labels (npy_pair.h), where (N, H, W, C)
//             and (N, C, H, W) are told apart by which axis has 1 to 4 entries; npy_nchw and
//             npy_nhwc say it, also of npz. Or arrays of tokens, which are `tokens`.
//   npz       a file or directory with archives of such arrays (npz_pair.h)
//   safetensors  a file or directory with such tensors (safetensors_files.h), or, like npy, tokens
//   csv       a file or directory of tables, *.csv or *.tsv (csv_dataset.h)
//   image_folder  a directory with one for each class, of JPEG and PNG files (image_folder.h)
//   webdataset, tfrecord, mds  shards with JPEG or PNG images and labels (webdataset.h, tfrecord.h,
//             mds.h)
//   arrow     Arrow IPC files with pixels, or with one of the next two, which it then stands for
//   arrow_images, arrow_tokens  such files with JPEG or PNG images, or tokens (arrow_choice.h)
//   tokens, tokens_u32, megatron, text  a file or a directory (token_files.h)
//
// All are mapped and read where they lie, with these exceptions:
//   - gzipped IDX files, compressed arrays, and shards that are compressed as a whole
//     (packed_shards.h) are inflated once into `cache_dir`, which is created when missing
//   - text with SampleCut::tokenizer becomes tokens once, in `cache_dir` (tokenized_text.h)
//   - encoded images are found through an index there (extent_index.h), and read when needed.
Result<std::unique_ptr<Dataset>> open_dataset(const wire::DatasetSpec& spec, Split split,
                                              const std::string& cache_dir,
                                              const ProgressFn& progress = {},
                                              const SampleCut& cut = {});

}  // namespace lockstep::data
