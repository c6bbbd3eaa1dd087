// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/notify/channel.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "detectors/model/result.h"
#include "exporter/loop/http_client.h"
#include "exporter/loop/http_options.h"
#include "exporter/loop/mail_client.h"
#include "exporter/loop/owned_fd.h"
#include "exporter/loop/small_file.h"
#include "exporter/notify/json.h"
#include "exporter/notify/mail.h"

namespace rankscope::exporter::notify {
namespace {

using End = SendOutcome::End;

constexpr size_t kMostSecret = 4096;
// Most relays take mails of 25 MB, a third of which is base64.
constexpr size_t kMostAttachment = 16 << 20;

// The first line of a file that nobody else may read.
Result<std::string> ReadSecret(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return Error{path + " cannot be read"};
  if ((info.st_mode & 077) != 0) return Error{path + " can be read by others; chmod 600"};
  std::string text = ReadSmallFile(path, kMostSecret);
  text.resize(std::min(text.find_first_of("\r\n"), text.size()));
  if (text.empty()) return Error{path + " is empty or cannot be read"};
  return text;
}

// What `run --artifacts` has made, and nothing that was put in its place.
std::optional<Attachment> ReadArchive(const std::string& path, uint32_t uid) {
  if (path.empty()) return std::nullopt;
  const OwnedFd fd(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat info {};
  if (!fd || fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != uid ||
      info.st_size > static_cast<off_t>(kMostAttachment))
    return std::nullopt;
  Attachment attachment{"artifacts.tar.gz", "application/gzip", std::string(kMostAttachment, '\0')};
  size_t have = 0;
  for (ssize_t size = 1; size > 0 && have < attachment.bytes.size();
       have += static_cast<size_t>(std::max<ssize_t>(size, 0)))
    size = read(fd.get(), attachment.bytes.data() + have, attachment.bytes.size() - have);
  attachment.bytes.resize(have);
  return attachment;
}

SendOutcome SendByMail(const NotifyChannel& channel, const std::string& address, const Batch& batch,
                       const Report& report, std::optional<uint32_t> files_of) {
  MailServer server;
  server.url = channel.url;
  if (!channel.url_file.empty()) {
    const auto url = ReadSecret(channel.url_file);
    if (!url) return {End::kFailed, url.error()};
    server.url = *url;
  }
  using StartTls = MailServer::StartTls;
  server.starttls = channel.starttls == "never"        ? StartTls::kNever
                    : channel.starttls == "if_offered" ? StartTls::kIfOffered
                                                       : StartTls::kRequired;
  server.ca_file = channel.ca_file;
  server.user = channel.user;
  if (!channel.password_file.empty()) {
    const auto password = ReadSecret(channel.password_file);
    if (!password) return {End::kFailed, password.error()};
    server.password = *password;
  }
  const Notification& first = *batch.front();
  MailHead head;
  head.from = channel.from;
  head.to = address.empty() ? channel.to : std::vector<std::string>{address};
  head.id = first.id();
  head.thread = first.thread();
  if (batch.size() > 1) head.thread = head.id += ".list." + std::to_string(batch.size());
  head.wall_ns = batch.back()->at_ns();
  std::optional<Attachment> attachment;
  if (files_of && channel.log && batch.size() == 1)
    attachment = ReadArchive(first.archive(), *files_of);
  // At 100 kB/s.
  if (attachment)
    server.timeout =
        server.timeout + Milliseconds(static_cast<int64_t>(attachment->bytes.size()) / 100);
  const MailOutcome outcome = SendMail(
      server, {head.from, head.to}, RenderMail(report, head, attachment ? &*attachment : nullptr));
  switch (outcome.end) {
    case MailOutcome::End::kTaken:
      return {End::kTaken, {}};
    case MailOutcome::End::kRefused:
      return {End::kRefused, outcome.error};
    case MailOutcome::End::kFailed:
      break;
  }
  return {End::kFailed, outcome.error};
}

std::string BodyFor(const NotifyChannel& channel, const Batch& batch, const Report& report,
                    const ReportOptions& options) {
  switch (channel.kind) {
    case ChannelKind::kAlertmanager:
      return RenderAlerts(batch, options);
    case ChannelKind::kSlack:
      return RenderSlack(report);
    case ChannelKind::kTeams:
      return RenderTeams(report);
    case ChannelKind::kWebhook:
    case ChannelKind::kEmail:
      break;
  }
  return RenderWebhook(batch, options);
}

Result<HttpRequest> RequestFor(const NotifyChannel& channel) {
  HttpRequest request;
  request.url = channel.url;
  request.max_bytes = 64 << 10;
  if (!channel.url_file.empty()) {
    const auto url = ReadSecret(channel.url_file);
    if (!url) return Error{url.error()};
    request.url = *url;
  }
  if (!channel.curl_config.empty()) {
    auto options = ReadHttpOptions(ReadSmallFile(channel.curl_config));
    if (!options) return Error{channel.curl_config + ": " + options.error()};
    request.options = *std::move(options);
  }
  if (channel.kind == ChannelKind::kAlertmanager) {
    while (request.url.ends_with('/')) request.url.pop_back();
    request.url += "/api/v2/alerts";
  }
  return request;
}

SendOutcome SendByHttp(const NotifyChannel& channel, std::string body) {
  if (channel.kind == ChannelKind::kAlertmanager && body == "[]") return {End::kTaken, {}};
  const auto request = RequestFor(channel);
  if (!request) return {End::kFailed, request.error()};
  const HttpAnswer answer = HttpPost(*request, {"application/json", std::move(body)});
  if (answer.end == HttpAnswer::End::kAnswered && answer.status / 100 == 2)
    return {End::kTaken, {}};
  // A key that is not there yet, a page that has moved, and too much at once pass.
  const bool refused = answer.end == HttpAnswer::End::kAnswered &&
                       (answer.status == 400 || answer.status == 413 || answer.status == 422);
  return {refused ? End::kRefused : End::kFailed, answer.error};
}

}  // namespace

std::string WhyNotOurs(const NotifyChannel& channel) {
  for (const std::string* file :
       {&channel.url_file, &channel.curl_config, &channel.password_file, &channel.ca_file}) {
    if (!file->empty() && access(file->c_str(), R_OK) != 0)
      return "channel " + channel.name + ": " + *file + " cannot be read by this user";
  }
  return {};
}

SendOutcome Send(const NotifyConfig& config, const NotifyChannel& channel,
                 const std::string& address, const Batch& batch, std::optional<uint32_t> files_of) {
  const ReportOptions options{config.link, channel.log};
  const Report report = MakeReport(batch, options);
  SendOutcome outcome = channel.kind == ChannelKind::kEmail
                            ? SendByMail(channel, address, batch, report, files_of)
                            : SendByHttp(channel, BodyFor(channel, batch, report, options));
  if (!outcome.error.empty()) outcome.error = "channel " + channel.name + ": " + outcome.error;
  return outcome;
}

}  // namespace rankscope::exporter::notify
