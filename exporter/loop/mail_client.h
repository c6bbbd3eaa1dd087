// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Hands one mail to an SMTP server, within a deadline. It is libcurl, loaded by the first mail. No
// proxy, nothing of the environment, no signals. Blocks: for a thread of its own. Any number of
// threads.
#pragma once

#include <string>
#include <vector>

#include "detectors/model/time.h"

namespace rankscope::exporter {

struct MailServer {
  // smtp://HOST[:PORT], or smtps:// for TLS from the first byte.
  std::string url;
  // Of smtp://. kIfOffered: whoever stands between can take the offer out, and reads along.
  enum class StartTls { kRequired, kIfOffered, kNever } starttls = StartTls::kRequired;
  std::string user, password;  // empty: the server takes mail without
  std::string ca_file;         // empty: those of the system
  std::string helo;            // empty: the host's name
  Duration connect_timeout = Seconds(10);
  Duration timeout = Seconds(20);  // of the whole, connecting included
};

struct MailEnvelope {
  std::string from;             // name@host
  std::vector<std::string> to;  // the same
};

struct MailOutcome {
  enum class End {
    kTaken,
    kRefused,  // the server says that it will never take this
    kFailed,   // anything that another time may be different
  };
  End end = End::kFailed;
  std::string error;  // one phrase after the server's name
};

// `message`: header and body with lines that end in CRLF.
MailOutcome SendMail(const MailServer& server, const MailEnvelope& envelope,
                     const std::string& message);

}  // namespace rankscope::exporter
