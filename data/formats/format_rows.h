// The rows of all formats, each defined in its format's source.
//
// To add a format: write its source with its row, list the row here, and add its name to
// kNamedFormats (comm/run/job/data_formats.h).
//
// Thread-safety: constants.
#pragma once

#include "data/dataset/format_row.h"

namespace lockstep::data {

extern const DataFormat kIdxFormat;
extern const DataFormat kCifar10Format;
extern const DataFormat kCifar100Format;
extern const DataFormat kNpyFormat;
extern const DataFormat kNpyNchwFormat;
extern const DataFormat kNpyNhwcFormat;
extern const DataFormat kNpzFormat;
extern const DataFormat kSafetensorsFormat;
extern const DataFormat kMegatronFormat;
extern const DataFormat kMdsFormat;
extern const DataFormat kWebdatasetFormat;
extern const DataFormat kTfrecordFormat;
extern const DataFormat kArrowFormat;
extern const DataFormat kArrowImagesFormat;
extern const DataFormat kArrowTokensFormat;
extern const DataFormat kTokensFormat;
extern const DataFormat kTokensU32Format;
extern const DataFormat kTextFormat;
extern const DataFormat kImageFolderFormat;
extern const DataFormat kImageMaskFormat;
extern const DataFormat kParquetFormat;
extern const DataFormat kCsvFormat;

// In the order of detection (DirectoryStep, FileStep).
inline constexpr const DataFormat* kFormatRows[] = {
    &kIdxFormat,       &kCifar10Format,     &kCifar100Format,    &kNpyFormat,
    &kNpyNchwFormat,   &kNpyNhwcFormat,     &kNpzFormat,         &kSafetensorsFormat,
    &kMegatronFormat,  &kMdsFormat,         &kWebdatasetFormat,  &kTfrecordFormat,
    &kArrowFormat,     &kArrowImagesFormat, &kArrowTokensFormat, &kTokensFormat,
    &kTokensU32Format, &kTextFormat,        &kImageFolderFormat, &kImageMaskFormat,
    &kParquetFormat,   &kCsvFormat,
};

}  // namespace lockstep::data
