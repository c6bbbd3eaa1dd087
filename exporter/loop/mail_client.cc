// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/loop/mail_client.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "exporter/loop/curl_library.h"

namespace rankscope::exporter {
namespace {

struct Sender {
  std::string_view left;
};

size_t OnRead(char* data, size_t size, size_t count, void* context) {
  auto& sender = *static_cast<Sender*>(context);
  const size_t bytes = std::min(size * count, sender.left.size());
  std::memcpy(data, sender.left.data(), bytes);
  sender.left.remove_prefix(bytes);
  return bytes;
}

// What the server says besides its answers is nobody's.
size_t OnWrite(char*, size_t size, size_t count, void*) {
  return size * count;
}

class Delivery {
 public:
  explicit Delivery(const CurlLibrary& library) : curl_(library) {}

  MailOutcome Run(const MailServer& server, const MailEnvelope& envelope,
                  const std::string& message) {
    Sender sender{message};
    SetServer(server);
    SetEnvelope(envelope);
    curl_.Set(CURLOPT_UPLOAD, 1L);
    curl_.Set(CURLOPT_READFUNCTION, &OnRead);
    curl_.Set(CURLOPT_READDATA, static_cast<void*>(&sender));
    curl_.Set(CURLOPT_WRITEFUNCTION, &OnWrite);
    curl_.Set(CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(message.size()));
    if (const std::string refusal = curl_.Refusal(); !refusal.empty())
      return {MailOutcome::End::kFailed, "cannot be used: " + refusal};
    return Judge(curl_.Perform());
  }

 private:
  void SetServer(const MailServer& server) {
    // The path of the URL is what libcurl says HELO with.
    const std::string url = server.helo.empty() ? server.url : server.url + '/' + server.helo;
    const bool implicit = server.url.starts_with("smtps://");
    using StartTls = MailServer::StartTls;
    const long tls = server.starttls == StartTls::kRequired && !implicit ? CURLUSESSL_ALL
                     : server.starttls == StartTls::kIfOffered           ? CURLUSESSL_TRY
                                                                         : CURLUSESSL_NONE;
    curl_.SetConnection(url, "smtp,smtps", server.connect_timeout, server.timeout);
    curl_.Set(CURLOPT_USE_SSL, tls);
    curl_.Set(CURLOPT_SSL_VERIFYPEER, 1L);
    curl_.Set(CURLOPT_SSL_VERIFYHOST, 2L);
    curl_.SetText(CURLOPT_CAINFO, server.ca_file);
    curl_.SetText(CURLOPT_USERNAME, server.user);
    curl_.SetText(CURLOPT_PASSWORD, server.password);
    curl_.Set(CURLOPT_SERVER_RESPONSE_TIMEOUT,
              static_cast<long>(server.timeout.ns / 1'000'000'000));
  }

  void SetEnvelope(const MailEnvelope& envelope) {
    const std::string from = '<' + envelope.from + '>';
    curl_.Set(CURLOPT_MAIL_FROM, from.c_str());
    for (const std::string& to : envelope.to) curl_.Append('<' + to + '>');
    curl_.Set(CURLOPT_MAIL_RCPT, curl_.list());
    // One address that is gone keeps the mail from nobody else.
    curl_.Set(CURLOPT_MAIL_RCPT_ALLLOWFAILS, 1L);
  }

  MailOutcome Judge(CURLcode code) const {
    using End = MailOutcome::End;
    if (code == CURLE_OK) return {End::kTaken, {}};
    const long status = curl_.Number(CURLINFO_RESPONSE_CODE);
    // 5yz is for good (RFC 5321, 4.2.1); a login that is refused may be a password that is being
    // changed, and a connection that breaks off says nothing.
    const bool answered =
        code == CURLE_SEND_ERROR || code == CURLE_RECV_ERROR || code == CURLE_WEIRD_SERVER_REPLY;
    if (status / 100 == 5 && answered)
      return {End::kRefused, "refuses the mail with status " + std::to_string(status)};
    switch (code) {
      case CURLE_OPERATION_TIMEDOUT:
        return {End::kFailed, "does not answer in time"};
      case CURLE_LOGIN_DENIED:
        return {End::kFailed, "refuses user and password"};
      case CURLE_USE_SSL_FAILED:
        return {End::kFailed, "offers no STARTTLS"};
      default:
        return {End::kFailed, "takes no mail: " + curl_.Said(code)};
    }
  }

  CurlRequest curl_;
};

}  // namespace

MailOutcome SendMail(const MailServer& server, const MailEnvelope& envelope,
                     const std::string& message) {
  const CurlLibrary& library = TheCurlLibrary();
  if (!library.error.empty()) return {MailOutcome::End::kFailed, library.error};
  return Delivery(library).Run(server, envelope, message);
}

}  // namespace rankscope::exporter
