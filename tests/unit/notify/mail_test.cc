// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A mail as a server gets it, and what a job can name to disturb it.
#include "exporter/notify/mail.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/notify/sample.h"

namespace rankscope::exporter::notify {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr ReportOptions kWithLog{"http://n1:10177", true};

MailHead Head(const Notification& n) {
  return {"rankscope@example.org",
          {"ops@example.org", "lena@example.org"},
          n.id(),
          n.thread(),
          n.at_ns()};
}

std::string HeaderPart(const std::string& mail) {
  return mail.substr(0, mail.find("\r\n\r\n"));
}

TEST(Mail, SaysWhatHappenedInItsHeader) {
  const Notification n = SampleNotification();
  const std::string mail = RenderMail(MakeReport({&n}, kWithLog), Head(n));
  EXPECT_EQ(HeaderPart(mail),
            "From: rankscope <rankscope@example.org>\r\n"
            "To: ops@example.org,\r\n lena@example.org\r\n"
            "Subject: [rankscope] job 8841: failed, A2 signal_kill (sigsegv) on rank 1, node n1\r\n"
            "Date: Fri, 27 Nov 2026 20:50:56 +0000\r\n"
            "Message-ID: <rs.8841.1764276656000.n1@example.org>\r\n"
            "Auto-Submitted: auto-generated\r\n"
            "MIME-Version: 1.0\r\n"
            "Content-Type: multipart/alternative;\r\n boundary=\"=_rankscope_alternative\"");
}

TEST(Mail, TextIsReadFromTheTop) {
  const Notification n = SampleNotification();
  EXPECT_EQ(RenderText(MakeReport({&n}, kWithLog)),
            R"(job 8841: failed, A2 signal_kill (sigsegv) on rank 1, node n1

Status:     failed
Verdict:    A2 signal_kill (sigsegv): a fatal signal killed a process, without a traceback
Confidence: 0.95, kernel record
Where:      rank 1, node n1
Ran for:    2 h 5 min
Exit code:  1
Last step:  5400 of 10000
Loss:       2.61
Checkpoint: /scratch/run7/step_5000.pt (step 5000)
Job name:   llama
User:       lena
Partition:  gpu
Command:    torchrun train.py

What it shows
  - rank 1 was terminated by SIGSEGV, without a traceback

Cause
  - rank 1 crashed in native code (SIGSEGV)

Do now
  - Rerun with PYTHONFAULTHANDLER=1 to get the Python frame

Last lines of rank 1
  | step 5400 loss 2.61

http://n1:10177/job/8841
)");
  EXPECT_THAT(RenderText(MakeReport({&n}, {})), Not(HasSubstr("Last lines")));
}

TEST(Mail, FollowUpsAreOfTheThread) {
  Notification n = SampleNotification();
  n.set_id(n.thread() + ".1");
  const std::string head = HeaderPart(RenderMail(MakeReport({&n}, {}), Head(n)));
  EXPECT_THAT(head, HasSubstr("Message-ID: <rs.8841.1764276656000.n1.1@example.org>"));
  EXPECT_THAT(head, HasSubstr("References: <rs.8841.1764276656000.n1@example.org>"));
}

TEST(Mail, NoNameBeginsAHeader) {
  Notification n = SampleNotification();
  for (const std::string& evil :
       {std::string("x\r\nBcc: victim@example.org"), std::string("x\n\n<b>body"),
        std::string("x\x00y\x0b\x0c", 5), std::string("=?utf-8?B?QmNjOg==?="),
        std::string("\xE2\x80\xAE gpj.exe"), std::string(5000, 'a') + "\r\nBcc: a@b"}) {
    n.set_job_id(evil);
    n.set_sub(evil);
    n.set_ended(evil);
    n.set_status(Notification::STOPPED);
    const std::string mail = RenderMail(MakeReport({&n}, kWithLog), Head(n));
    const std::string head = HeaderPart(mail);
    EXPECT_THAT(head, Not(HasSubstr("\nBcc"))) << head;
    EXPECT_THAT(head, HasSubstr("boundary=\"=_rankscope_alternative\"")) << head;
    EXPECT_THAT(head, Not(HasSubstr("QmNjOg==?=\r\nDate"))) << "decoded by the reader";
    EXPECT_THAT(head, Not(HasSubstr("\xE2\x80\xAE")));
    size_t from = 0;
    for (size_t end = mail.find("\r\n"); end != std::string::npos;
         from = end + 2, end = mail.find("\r\n", from)) {
      EXPECT_LE(end - from, 998u);
      EXPECT_NE(mail.substr(from, end - from), ".") << "the end of the mail";
    }
    EXPECT_THAT(RenderHtml(MakeReport({&n}, kWithLog)), Not(HasSubstr("<b>")));
  }
}

TEST(Mail, NoLineOfABodyIsAPart) {
  Notification n = SampleNotification();
  n.set_log(0, "--=_rankscope_alternative--");
  n.add_log(".");
  n.add_log("<script>alert(1)</script>");
  const std::string mail = RenderMail(MakeReport({&n}, kWithLog), Head(n));
  size_t parts = 0;
  for (size_t at = mail.find("--=_rankscope"); at != std::string::npos;
       at = mail.find("--=_rankscope", at + 1))
    ++parts;
  EXPECT_EQ(parts, 3u);
  EXPECT_THAT(RenderHtml(MakeReport({&n}, kWithLog)), Not(HasSubstr("<script>")));
}

TEST(Mail, HeaderValuesBeyondAsciiAreEncodedWords) {
  EXPECT_EQ(HeaderValue("job \xC3\xBC"), "=?utf-8?B?am9iIMO8?=");
  EXPECT_EQ(HeaderValue("plain"), "plain");
  std::string text;
  for (int i = 0; i < 60; ++i) text += "\xC3\xBC";
  const std::string value = HeaderValue(text);
  EXPECT_THAT(value, HasSubstr("?=\r\n =?utf-8?B?"));
  size_t from = 0;
  for (size_t end = value.find("\r\n"); end != std::string::npos;
       from = end + 2, end = value.find("\r\n", from))
    EXPECT_LE(end - from, 76u);
}

TEST(Mail, QuotedPrintableKeepsEveryByte) {
  EXPECT_EQ(QuotedPrintable("a=b\n. \n\xC3\xBC"), "a=3Db\r\n=2E=20\r\n=C3=BC");
  const std::string lines = QuotedPrintable(std::string(200, 'x'));
  EXPECT_EQ(lines.find("=\r\n"), 75u);
}

TEST(Mail, AnArchiveIsAPartOfItsOwn) {
  Notification n = SampleNotification();
  n.set_archive("/home/lena/r/artifacts.tar.gz");
  n.add_kept_files("out/a.log, 12 bytes");
  n.add_left_files("out/core, 900 bytes: a pipe");
  const Report report = MakeReport({&n}, {});
  const std::string text = RenderText(report);
  EXPECT_THAT(text, HasSubstr("Files kept\n  - out/a.log, 12 bytes\n"));
  EXPECT_THAT(text, HasSubstr("Files left out\n  - out/core, 900 bytes: a pipe\n"));
  const Attachment attachment{"artifacts.tar.gz", "application/gzip", std::string(100, 'x')};
  const std::string mail =
      RenderMail(report, {"a@b.example", {"c@d.example"}, "id", "id", 0}, &attachment);
  EXPECT_THAT(mail,
              HasSubstr("Content-Type: multipart/mixed;\r\n boundary=\"=_rankscope_mixed\"\r\n"));
  EXPECT_THAT(mail, HasSubstr("\r\n--=_rankscope_mixed\r\nContent-Type: multipart/alternative;"));
  EXPECT_THAT(mail,
              HasSubstr("Content-Disposition: attachment; filename=\"artifacts.tar.gz\"\r\n\r\n"
                        "eHh4eHh4eHh4eHh4eHh4eHh4eHh4"));
  EXPECT_THAT(mail, testing::EndsWith("\r\n--=_rankscope_mixed--\r\n"));
}

TEST(Mail, ManyJobsAreOneList) {
  std::vector<Notification> jobs(200, SampleNotification());
  Batch batch;
  for (size_t i = 0; i < jobs.size(); ++i) {
    jobs[i].set_job_id(std::to_string(1000 + i));
    batch.push_back(&jobs[i]);
  }
  const Report report = MakeReport(batch, kWithLog);
  EXPECT_EQ(report.subject,
            "[rankscope] 200 jobs: 200 failed; 200 A2 signal_kill (sigsegv); node n1");
  EXPECT_EQ(report.jobs.size(), 101u);
  EXPECT_EQ(report.jobs.back(), "and 100 more");
  for (Notification& job : jobs) {
    job.set_array_job_id("77");
    job.set_array_task("3");
  }
  EXPECT_THAT(MakeReport(batch, {}).subject, HasSubstr("array 77: 200 failed; 200 A2"));
}

TEST(Mail, AnArrayIsOneSummary) {
  std::vector<Notification> jobs(2, SampleNotification());
  for (Notification& job : jobs) {
    job.set_array_job_id("77");
    job.set_array_task("3");
    job.set_array_tasks(8);
    job.set_array_completed(5);
    job.set_array_running(1);
  }
  const Report report = MakeReport({&jobs[0], &jobs[1]}, {});
  EXPECT_THAT(report.subject, HasSubstr("array 77: 5 completed, 2 failed; 2 A2"));
  EXPECT_THAT(RenderText(report), HasSubstr("8 tasks; 5 completed, 1 still running on this node"));
  // Those that are told themselves are not counted again.
  jobs[1].set_status(Notification::COMPLETED);
  jobs[0].set_array_completed(1);
  jobs[1].set_array_completed(1);
  EXPECT_THAT(MakeReport({&jobs[0], &jobs[1]}, {}).subject,
              HasSubstr("array 77: 1 completed, 1 failed;"));
  // One task of it is told as a job.
  const Report one = MakeReport({&jobs[0]}, {});
  EXPECT_THAT(one.subject, HasSubstr("job 8841 (task 3 of array 77): failed"));
  EXPECT_THAT(RenderText(one), HasSubstr("8 tasks; 1 completed, 1 still running on this node"));
}

}  // namespace
}  // namespace rankscope::exporter::notify
