#include "data/formats/images/encoded_source.h"

#include <utility>

namespace lockstep::data {

Result<EncodedSource> inflated(EncodedSource source, const std::string& cache_dir) {
  return source.inflate ? source.inflate(cache_dir) : Result<EncodedSource>(std::move(source));
}

}  // namespace lockstep::data
