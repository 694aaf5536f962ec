// Opens the files of a data set, of any format.
//
// ERRORS of open_dataset(), each one sentence that names the file and says what to do:
//   kNoInput  the directory or a file of the pair is not there
//   kBadData  truncated, corrupt or not what it says it is; counts that differ; no sample
//   kUsage    an unknown format, or a format that the files do not tell
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

// Opens by spec.format, one of kDataFormats (comm/run/job/data_formats.h):
//
//   auto      as detect_format() finds it
//   idx       a directory with the standard IDX files (train-images..., train-labels... for kTrain,
//             t10k-... for kEval; gzipped or not); or with exactly one pair of images and labels of
//             any name, which then serves either split (idx_pair.h)
//   cifar10, cifar100  the directory of the binary version (cifar_files.h)
//   npy       a directory with NumPy arrays of images and labels (npy_pair.h). The axis with 1 to 4
//             entries tells (N, H, W, C) from (N, C, H, W); npy_nchw and npy_nhwc state it, also
//             for npz. Or arrays of tokens, which are `tokens`.
//   npz       a file or directory with archives of such arrays (npz_pair.h)
//   safetensors  a file or directory with such tensors (safetensors_files.h), or, like npy, tokens
//   csv       a file or directory of tables, *.csv or *.tsv (csv_dataset.h)
//   image_folder  a directory with one for each class, of JPEG and PNG files (image_folder.h)
//   image_mask  a directory of images and directories of masks (stem_directory.h); where a job
//   names
//             fields, found instead of image_folder
//   webdataset, tfrecord, mds  shards with JPEG or PNG images and labels (webdataset.h, tfrecord.h,
//             mds.h)
//   arrow     Arrow IPC files with pixels, or with one of the next two, which it then stands for
//   arrow_images, arrow_tokens  such files with JPEG or PNG images, or tokens (arrow_choice.h)
//   tokens, tokens_u32, megatron, text  a file or a directory (token_format.h)
//
// Lockstep maps all files and reads them in place, with these exceptions:
// - It inflates gzipped IDX files, compressed arrays, and shards compressed as a whole
//   (packed_shards.h) once into `cache_dir`. It creates `cache_dir` if missing.
// - It turns text with SampleCut::tokenizer into tokens once, in `cache_dir` (tokenized_text.h).
// - It finds encoded images through an index in `cache_dir` (extent_index.h), and reads an image
//   when needed.
Result<std::unique_ptr<Dataset>> open_dataset(const wire::DatasetSpec& spec, Split split,
                                              const std::string& cache_dir,
                                              const ProgressFn& progress = {},
                                              const SampleCut& cut = {});

// Opens data that the user names for evaluation: the split kEval, or all of a directory in which no
// name says that a file is for evaluation. Errors as open_dataset().
Result<std::unique_ptr<Dataset>> open_to_evaluate(const wire::DatasetSpec& spec,
                                                  const std::string& cache_dir,
                                                  const ProgressFn& progress = {},
                                                  const SampleCut& cut = {});

}  // namespace lockstep::data
