// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The words of a message, before any format: what stands in its subject, its lines and its links.
// Its texts are plain UTF-8 on one line each; a job's own words are in them. Pure; any thread.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "exporter/notify/news.h"

namespace rankscope::exporter::notify {

// A message tells of one job, or of many that one incident has ended.
using Batch = std::vector<const Notification*>;

struct ReportOptions {
  std::string link;  // the pages of the daemon; empty: none
  bool log = false;  // lines of the job's output may be quoted
};

struct Report {
  std::string
      subject;  // "[rankscope] job 8841: failed, A2 signal_kill (sigsegv) on rank 1, node n1"
  std::string headline;  // the same without the first word
  std::vector<std::pair<std::string, std::string>> facts;
  struct Section {
    std::string title;
    std::vector<std::string> points;
  };
  std::vector<Section> sections;
  std::string log_title;
  std::vector<std::string> log;
  std::vector<std::string> jobs;  // of a list: a line each
  std::string link;
  bool good = false;  // nothing is to be done
};

Report MakeReport(const Batch& batch, const ReportOptions& options);

// "failed", "hangs", "was cancelled by lena".
std::string StatusWords(const Notification& notification);
// "rank 1, node n1"; empty: nobody is known.
std::string CulpritWords(const Notification& notification);
// "A2 signal_kill (sigsegv)".
std::string FamilyWords(const Notification& notification);
// Of the daemon's pages; empty without one.
std::string LinkOf(const Notification& notification, const std::string& base);
// "2 h 5 min", "48 s".
std::string DurationWords(double seconds);

}  // namespace rankscope::exporter::notify
