// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/http/message.h"

#include <algorithm>
#include <utility>

#include "detectors/document/verdict_json.h"

namespace rankscope::http {
namespace {

bool SameName(std::string_view a, std::string_view b) {
  const auto lower = [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

std::string_view Find(const std::vector<Header>& headers, std::string_view name) {
  const auto header = std::find_if(headers.begin(), headers.end(),
                                   [&](const Header& h) { return SameName(h.name, name); });
  return header == headers.end() ? std::string_view() : std::string_view(header->value);
}

}  // namespace

std::string_view Request::HeaderValue(std::string_view name) const {
  return Find(headers, name);
}

std::string Request::JoinedHeader(std::string_view name) const {
  std::string out;
  for (const Header& header : headers) {
    if (!SameName(header.name, name)) continue;
    if (!out.empty()) out.append(", ");
    out.append(header.value);
  }
  return out;
}

std::string_view Response::HeaderValue(std::string_view name) const {
  return Find(headers, name);
}

size_t Response::ContentSize() const {
  size_t size = body.size();
  for (const Page& page : pages) size += page->size();
  return size;
}

std::string Response::Content() const {
  std::string content = body;
  for (const Page& page : pages) content.append(*page);
  return content;
}

std::string_view ReasonPhrase(int status) {
  static constexpr std::pair<int, std::string_view> kPhrases[] = {
      {200, "OK"},
      {304, "Not Modified"},
      {400, "Bad Request"},
      {401, "Unauthorized"},
      {403, "Forbidden"},
      {404, "Not Found"},
      {405, "Method Not Allowed"},
      {408, "Request Timeout"},
      {411, "Length Required"},
      {413, "Content Too Large"},
      {414, "URI Too Long"},
      {421, "Misdirected Request"},
      {429, "Too Many Requests"},
      {431, "Request Header Fields Too Large"},
      {500, "Internal Server Error"},
      {501, "Not Implemented"},
      {503, "Service Unavailable"},
      {505, "HTTP Version Not Supported"},
  };
  for (const auto& [code, phrase] : kPhrases) {
    if (code == status) return phrase;
  }
  return "Error";
}

void MarkCompressed(Response& response) {
  response.headers.push_back({"Content-Encoding", "gzip"});
  for (Header& header : response.headers) {
    if (header.name == "ETag") header.value.insert(0, "W/");
  }
}

Response Answer(std::string_view content_type, std::string body) {
  Response response;
  response.headers.push_back({"Content-Type", std::string(content_type)});
  response.body = std::move(body);
  return response;
}

Response Problem(int status, std::string_view detail) {
  std::string body = R"({"type":"about:blank","title":)";
  AppendJsonString(ReasonPhrase(status), body);
  body.append(R"(,"status":)").append(std::to_string(status)).append(R"(,"detail":)");
  AppendJsonString(detail, body);
  body.append("}\n");
  Response response = Answer("application/problem+json", std::move(body));
  response.status = status;
  return response;
}

Response Refusal(int status, std::string_view detail) {
  Response response = Answer(kPlainText, std::string(detail) + "\n");
  response.status = status;
  return response;
}

}  // namespace rankscope::http
