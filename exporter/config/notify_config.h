// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The file of `notify.file`: who is told of which jobs, and through what. A file of its own,
// because channels and rules are lists of sections, which the table of configuration keys has not.
// Strict YAML, every mistake reported with its line. Secrets stand in files that it names, and are
// read by whoever sends. Plain data; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/model/time.h"
#include "exporter/config/config.h"

namespace rankscope::exporter {

enum class ChannelKind : uint8_t { kEmail, kAlertmanager, kWebhook, kSlack, kTeams };
// By ChannelKind; also the label values of metrics.
inline constexpr std::string_view kChannelKinds[] = {"email", "alertmanager", "webhook", "slack",
                                                     "teams"};

// What a rule may ask for in `on`, and whether it is told without being asked for.
struct OccasionRow {
  std::string_view name;
  bool unasked;
};
inline constexpr OccasionRow kOccasions[] = {{"hung", true},      {"diverged", true},
                                             {"failed", true},    {"stopped", true},
                                             {"recovered", true}, {"completed", false}};

struct NotifyChannel {
  std::string name;
  ChannelKind kind = ChannelKind::kEmail;
  std::string url;          // smtp:// or smtps:// of a mail server, else http:// or https://
  std::string url_file;     // in place of it: the URL of a chat's webhook is a secret
  std::string curl_config;  // options of HTTP requests: headers, certificates
  std::string from;         // of mail
  std::vector<std::string> to;
  std::string user, password_file, ca_file;
  std::string starttls = "required";  // required | if_offered | never
  bool log = false;                   // lines of the job's output may be quoted
  bool jobs = true;                   // a job may choose it
  int64_t per_minute = 20;            // messages
};

// Of a job all that is listed must hold; an empty list holds for all.
struct NotifyRule {
  std::vector<std::string> domains, severities, families, users, partitions, on, channels;
};

struct NotifyConfig {
  std::string link;                       // of this daemon's pages, without a slash at the end
  std::vector<std::string> mail_domains;  // of the addresses that a job may choose
  int64_t per_user_per_hour = 20;         // messages of one user's jobs to each channel
  Duration gather = Seconds(1);           // for others of the same incident
  Duration array_wait = Seconds(600);  // at most, of a task's end for the other tasks of its array
  std::vector<NotifyChannel> channels;
  std::vector<NotifyRule> rules;

  const NotifyChannel* Find(std::string_view channel) const;
};

struct NotifyOutcome {
  NotifyConfig config;
  Problems problems;
};

NotifyOutcome ParseNotifyConfig(std::string_view text, const std::string& name);
// The same from a file; an unreadable file is one problem.
NotifyOutcome LoadNotifyConfig(const std::string& path);

// Whether a user's process may take its word: the file is root's or the user's own, and nobody else
// can write it.
Status CheckOwner(const std::string& path, uint32_t uid);

// Whether it is name@host of a plain form: no comments, quotes, blanks or line ends.
bool IsMailAddress(std::string_view text);

// The URL without what may be secret in it: https://HOST/...
std::string MaskedUrl(std::string_view url);

}  // namespace rankscope::exporter
