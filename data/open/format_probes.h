// The probes of formats: what the rows in formats.cc look for in a directory or at a file.
//
// Thread-safety: free functions.
#pragma once

#include <string>

#include "comm/base/status.h"
#include "data/open/format_row.h"

namespace lockstep::data::probe {

Result<std::string> idx_in(const Listing& directory);
Result<std::string> idx_remains_in(const Listing& directory);
Result<std::string> cifar_directly_in(const Listing& directory);
Result<std::string> cifar_unpacked_in(const Listing& directory);
Result<std::string> npy_in(const Listing& directory);
Result<std::string> npz_in(const Listing& directory);
Result<std::string> tensors_in(const Listing& directory);
Result<std::string> megatron_in(const Listing& directory);
Result<std::string> mds_in(const Listing& directory);
template <Split split>
Result<std::string> tar_in(const Listing& directory);
template <Split split>
Result<std::string> tfrecord_in(const Listing& directory);
template <Split split>
Result<std::string> arrow_in(const Listing& directory);
// Archives *.tar.gz and *.tgz come last, since the files beside them may be their unpacked content.
Result<std::string> packed_tar_in(const Listing& directory);
Result<std::string> tokens_in(const Listing& directory);
// Finds any other array. Opening it says why it cannot be used.
Result<std::string> any_array_in(const Listing& directory);
Result<std::string> text_in(const Listing& directory);
Result<std::string> image_folder_in(const Listing& directory);
Result<std::string> parquet_in(const Listing& directory);
Result<std::string> csv_in(const Listing& directory);

Result<std::string> megatron_at(const FileLook& file);
Result<std::string> bin_at(const FileLook& file);
Result<std::string> text_at(const FileLook& file);
Result<std::string> tar_at(const FileLook& file);
Result<std::string> npz_at(const FileLook& file);
Result<std::string> tensors_at(const FileLook& file);
Result<std::string> tfrecord_at(const FileLook& file);
Result<std::string> arrow_name_at(const FileLook& file);
Result<std::string> parquet_at(const FileLook& file);
Result<std::string> npy_at(const FileLook& file);
Result<std::string> token_header_at(const FileLook& file);
Result<std::string> arrow_bytes_at(const FileLook& file);
Result<std::string> csv_at(const FileLook& file);

}  // namespace lockstep::data::probe
