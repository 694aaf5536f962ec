// The status page: HTML, style and scripts, which lie beside this file and are part of the program
// (embed.cmake). It shows /api/v1/status, /history and /events of the server that it came from,
// takes nothing from elsewhere and needs no tools to be built.
//
// Thread-safety: constants.
#pragma once

#include <span>
#include <string_view>

#include "comm/http/http_server.h"

namespace lockstep::page {

struct File {
  std::string_view path;  // where it is served: "/", "/page.css"
  std::string_view content_type;
  std::string_view content;
};

std::span<const File> files();

// REQUIRES: one of files().
std::string_view content_of(std::string_view path);

http::Handler serve(const File& file);

}  // namespace lockstep::page
