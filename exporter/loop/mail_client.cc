// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/loop/mail_client.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
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

// One mail of one thread.
class Delivery {
 public:
  explicit Delivery(const CurlLibrary& library)
      : library_(library), handle_(library.easy_init(), library.easy_cleanup) {}
  ~Delivery() { library_.slist_free_all(recipients_); }
  Delivery(const Delivery&) = delete;
  Delivery& operator=(const Delivery&) = delete;

  MailOutcome Run(const MailServer& server, const MailEnvelope& envelope,
                  const std::string& message) {
    Sender sender{message};
    if (handle_ != nullptr) {
      SetServer(server);
      SetEnvelope(envelope);
      Set(CURLOPT_UPLOAD, 1L);
      Set(CURLOPT_READFUNCTION, &OnRead);
      Set(CURLOPT_READDATA, static_cast<void*>(&sender));
      Set(CURLOPT_WRITEFUNCTION, &OnWrite);
      Set(CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(message.size()));
    }
    if (handle_ == nullptr || refused_ != CURLE_OK)
      return {MailOutcome::End::kFailed,
              std::string("cannot be used: ") + library_.easy_strerror(refused_)};
    return Judge(library_.easy_perform(handle_.get()));
  }

 private:
  template <class Value>
  void Set(CURLoption option, Value value) {
    const CURLcode code = library_.easy_setopt(handle_.get(), option, value);
    if (refused_ == CURLE_OK) refused_ = code;
  }
  void SetText(CURLoption option, const std::string& text) {
    if (!text.empty()) Set(option, text.c_str());
  }

  void SetServer(const MailServer& server) {
    // The path of the URL is what libcurl says HELO with.
    const std::string url = server.helo.empty() ? server.url : server.url + '/' + server.helo;
    const bool implicit = server.url.starts_with("smtps://");
    using StartTls = MailServer::StartTls;
    const long tls = server.starttls == StartTls::kRequired && !implicit ? CURLUSESSL_ALL
                     : server.starttls == StartTls::kIfOffered           ? CURLUSESSL_TRY
                                                                         : CURLUSESSL_NONE;
    Set(CURLOPT_ERRORBUFFER, said_.data());
    Set(CURLOPT_URL, url.c_str());
    Set(CURLOPT_PROTOCOLS_STR, "smtp,smtps");
    Set(CURLOPT_USE_SSL, tls);
    Set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
    Set(CURLOPT_SSL_VERIFYPEER, 1L);
    Set(CURLOPT_SSL_VERIFYHOST, 2L);
    SetText(CURLOPT_CAINFO, server.ca_file);
    SetText(CURLOPT_USERNAME, server.user);
    SetText(CURLOPT_PASSWORD, server.password);
    Set(CURLOPT_PROXY, "");
    Set(CURLOPT_NOSIGNAL, 1L);
    Set(CURLOPT_QUICK_EXIT, 1L);  // as in http_client.cc
    Set(CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
    Set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(server.connect_timeout.ns / 1'000'000));
    Set(CURLOPT_TIMEOUT_MS, static_cast<long>(server.timeout.ns / 1'000'000));
    Set(CURLOPT_SERVER_RESPONSE_TIMEOUT, static_cast<long>(server.timeout.ns / 1'000'000'000));
    Set(CURLOPT_FORBID_REUSE, 1L);
  }

  void SetEnvelope(const MailEnvelope& envelope) {
    const std::string from = '<' + envelope.from + '>';
    Set(CURLOPT_MAIL_FROM, from.c_str());
    for (const std::string& to : envelope.to) {
      curl_slist* const longer = library_.slist_append(recipients_, ('<' + to + '>').c_str());
      if (longer == nullptr) {
        refused_ = CURLE_OUT_OF_MEMORY;
      } else {
        recipients_ = longer;
      }
    }
    Set(CURLOPT_MAIL_RCPT, recipients_);
    // One address that is gone keeps the mail from nobody else.
    Set(CURLOPT_MAIL_RCPT_ALLLOWFAILS, 1L);
  }

  MailOutcome Judge(CURLcode code) const {
    using End = MailOutcome::End;
    if (code == CURLE_OK) return {End::kTaken, {}};
    long status = 0;
    library_.easy_getinfo(handle_.get(), CURLINFO_RESPONSE_CODE, &status);
    const std::string said = said_[0] != '\0' ? said_.data() : library_.easy_strerror(code);
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
        return {End::kFailed, "takes no mail: " + said};
    }
  }

  const CurlLibrary& library_;
  std::array<char, CURL_ERROR_SIZE> said_{};
  std::unique_ptr<CURL, decltype(&::curl_easy_cleanup)> handle_;
  curl_slist* recipients_ = nullptr;
  CURLcode refused_ = CURLE_OK;
};

}  // namespace

MailOutcome SendMail(const MailServer& server, const MailEnvelope& envelope,
                     const std::string& message) {
  const CurlLibrary& library = TheCurlLibrary();
  if (!library.error.empty()) return {MailOutcome::End::kFailed, library.error};
  return Delivery(library).Run(server, envelope, message);
}

}  // namespace rankscope::exporter
