// The status page: HTML, style and scripts next to this file, which embed.cmake puts into the
// program. It shows /api/v1/status, /history and /events of its own server. It loads nothing from
// elsewhere, and its build needs no tools.
//
// Thread-safety: constants.
#pragma once

#include <span>
#include <string_view>

#include "comm/http/http_server.h"

namespace lockstep::page {

struct File {
  std::string_view path;  // of the URL: "/", "/page.css"
  std::string_view content_type;
  std::string_view content;
};

std::span<const File> files();

// REQUIRES: one of files().
std::string_view content_of(std::string_view path);

http::Handler serve(const File& file);

}  // namespace lockstep::page
