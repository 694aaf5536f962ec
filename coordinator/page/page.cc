#include "coordinator/page/page.h"

#include <algorithm>
#include <string>

#include "comm/base/check.h"

namespace lockstep::page {

std::string_view content_of(std::string_view path) {
  const auto all = files();
  const auto it =
      std::find_if(all.begin(), all.end(), [path](const File& file) { return file.path == path; });
  LOCKSTEP_CHECK(it != all.end(), "only files of the page are asked for");
  return it->content;
}

http::Handler serve(const File& file) {
  return [file](const http::Request&) {
    return http::Response{.content_type = std::string(file.content_type),
                          .body = std::string(file.content)};
  };
}

}  // namespace lockstep::page
