// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The whole watch beside programs that answer as Slurm's commands do: what is printed, how often
// Slurm is asked, and what happens while it is away.
#include "exporter/watch/watcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace rankscope::watch {
namespace {

namespace fs = std::filesystem;
using exporter::EventLoop;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

// Prints a row for each line of the file `queue`, whose words are COLUMN=VALUE; what is not named
// is "N/A". Where the file is missing nobody answers.
constexpr char kSqueue[] = R"py(#!/usr/bin/python3
import os, re, sys
folder = os.path.dirname(sys.argv[0])
open(folder + "/calls", "a").write("squeue " + sys.argv[sys.argv.index("-j") + 1] + "\n")
columns = [column.split(":0", 1) for column in sys.argv[-1].split(",")]
if not os.path.exists(folder + "/queue"):
    sys.exit("slurm_load_jobs error: Unable to contact slurm controller (connect failure)")
rows = [dict(re.findall(r"(\S+?)=(\S*)", line)) for line in open(folder + "/queue")]
if not rows:
    sys.exit("slurm_load_jobs error: Invalid job id specified")
for row in rows:
    print("".join(row.get(name, "N/A") + separator for name, separator in columns))
)py";

// Prints the rows of the file `accounts` with its separator; where it is missing there is no
// accounting.
constexpr char kSacct[] = R"py(#!/usr/bin/python3
import os, sys
folder = os.path.dirname(sys.argv[0])
open(folder + "/calls", "a").write("sacct " + sys.argv[sys.argv.index("-j") + 1] + "\n")
if not os.path.exists(folder + "/accounts"):
    sys.exit("Slurm accounting storage is disabled")
separator = next(word.partition("=")[2] for word in sys.argv if word.startswith("--delimiter="))
print("JobIDRaw|JobID|State|ExitCode|Start|End|NodeList|User|".replace("|", separator))
print(open(folder + "/accounts").read().replace("|", separator), end="")
)py";

class WatcherTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "watcher_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    Program("squeue", kSqueue);
    Program("sacct", kSacct);
    Program("scontrol", "#!/bin/sh\nexit 1\n");
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(Path(name) + ".new") << text;
    fs::rename(Path(name) + ".new", Path(name));
  }
  void Program(const std::string& name, const std::string& text) const {
    Write(name, text);
    chmod(Path(name).c_str(), 0755);
  }
  std::string Job(const std::string& id, const std::string& state, const std::string& more) const {
    const std::string now = std::to_string(time(nullptr) - 1);
    return "JobID=" + id + " ArrayJobID=" + id + " UserID=" + std::to_string(geteuid()) +
           " State=" + state + " RestartCnt=0 SubmitTime=" + now + " StartTime=" + now +
           " EndTime=" + now + " StdOut=" + Path("%j.out") + " StdErr=" + Path("%j.out") + " " +
           more + "\n";
  }
  size_t CallsOf(const std::string& program) const {
    std::ifstream in(Path("calls"));
    size_t count = 0;
    for (std::string line; std::getline(in, line);) count += line.starts_with(program) ? 1 : 0;
    return count;
  }

  // Runs it until it ends; `on_event` is called with each line.
  void Run(const std::vector<std::string>& jobs,
           const std::function<void(const json& line)>& on_event = {}) {
    EventLoop loop;
    exporter::slurm::Commands commands({folder_}, {});
    ASSERT_TRUE(commands.Find());
    WatchOptions options;
    options.interval = Seconds(1);
    options.json = true;
    for (const std::string& job : jobs) options.choices.push_back(*ReadJobChoice(job));
    Watcher watcher(loop, commands, options, [&](const std::string& line) {
      lines_.push_back(json::parse(line));
      if (on_event) on_event(lines_.back());
    });
    bool late = false;
    loop.After(Seconds(60), [&] {
      late = true;
      loop.Stop();
    });
    watcher.Start();
    loop.Run();
    EXPECT_FALSE(late) << json(lines_).dump(1);
    status_ = watcher.status();
  }
  std::vector<std::string> Events() const {
    std::vector<std::string> events;
    for (const json& line : lines_) events.push_back(line["event"]);
    return events;
  }
  json Event(const std::string& event) const {
    for (const json& line : lines_) {
      if (line["event"] == event) return line;
    }
    ADD_FAILURE() << "no " << event << " in " << json(lines_).dump(1);
    return {};
  }

  std::string folder_;
  std::vector<json> lines_;
  int status_ = -1;
};

constexpr char kTraceback[] =
    "step 1 loss 4.0\nstep 2 loss 3.0\nstep 3 loss 2.5\nTraceback (most recent call last):\n"
    "  File \"train.py\", line 20, in <module>\n    raise KeyError(\"x\")\nKeyError: 'x'\n";

TEST_F(WatcherTest, FromTheQueueToTheVerdict) {
  Write("queue", Job("8841", "PENDING", "Reason=Resources"));
  Run({"8841"}, [this](const json& line) {
    if (line["event"] == "state" && line["state"] == "PENDING")
      Write("queue", Job("8841", "RUNNING", "NodeList=n1"));
    if (line["event"] == "state" && line["state"] == "RUNNING") Write("8841.out", kTraceback);
    if (line["event"] == "output")
      Write("queue", Job("8841", "FAILED", "NodeList=n1 exit_code=768"));
  });
  EXPECT_THAT(Events(), testing::AllOf(testing::Contains("output"), testing::Contains("ended")));
  EXPECT_EQ(lines_[0]["reason"], "Resources");
  EXPECT_EQ(Event("output")["paths"], json({Path("8841.out")}));
  const json ended = Event("ended");
  EXPECT_EQ(ended["status"], 3);
  EXPECT_EQ(ended["verdict"]["code"], "X1") << ended.dump(1);
  EXPECT_EQ(Event("done")["not_completed"], 1);
  EXPECT_EQ(status_, 3);
}

TEST_F(WatcherTest, OneCallForAllJobs) {
  Write("queue", Job("1", "COMPLETED", "NodeList=n1 exit_code=0") +
                     Job("2", "COMPLETED", "NodeList=n1 exit_code=0"));
  Run({"1", "2", "1"});
  std::ifstream calls(Path("calls"));
  std::ostringstream text;
  text << calls.rdbuf();
  EXPECT_EQ(text.str(), "squeue 1,2\n") << "no other question, and once";
  EXPECT_EQ(Event("done")["completed"], 2);
  EXPECT_EQ(status_, 0);
}

TEST_F(WatcherTest, AnOutageIsToldAndOutlived) {
  Write("queue", Job("8841", "RUNNING", "NodeList=n1"));
  int told = 0;
  Run({"8841"}, [&](const json& line) {
    if (line["event"] == "state") fs::remove(Path("queue"));
    if (line["event"] == "slurm" && ++told == 1)
      Write("queue", Job("8841", "COMPLETED", "NodeList=n1 exit_code=0"));
  });
  EXPECT_EQ(told, 2);
  const json away = Event("slurm");
  EXPECT_EQ(away["answers"], false);
  EXPECT_THAT(away["error"].get<std::string>(), HasSubstr("Unable to contact slurm controller"));
  EXPECT_EQ(status_, 0);
}

TEST_F(WatcherTest, AccountingKnowsWhoHasLeft) {
  Write("queue", Job("8841", "RUNNING", "NodeList=n1") + Job("7", "RUNNING", "NodeList=n1"));
  Write("accounts", "");
  const std::string now = std::to_string(time(nullptr));
  Run({"8841", "7"}, [&](const json& line) {
    if (line["event"] == "state" && line["job"] == "8841")
      Write("queue", Job("7", "COMPLETED", "NodeList=n1 exit_code=0"));
    if (line["event"] == "note")  // it is some seconds behind
      Write("accounts", "8841|8841|CANCELLED by 0|0:0|" + now + "|" + now + "|n1|ada|\n");
  });
  EXPECT_EQ(Event("note")["job"], "8841");
  json ended;
  for (const json& line : lines_) {
    if (line["event"] == "ended" && line["job"] == "8841") ended = line;
  }
  EXPECT_EQ(ended["by"], "root(0)");
  EXPECT_EQ(ended["verdict"]["code"], "X20") << ended.dump(1);
  EXPECT_EQ(status_, 1);
}

TEST_F(WatcherTest, WithoutAccountingHowItEndedIsNotKnown) {
  Write("queue", Job("8841", "RUNNING", "NodeList=n1") + Job("7", "RUNNING", "NodeList=n1"));
  Run({"8841", "7"}, [&](const json& line) {
    if (line["event"] == "state" && line["job"] == "8841")
      Write("queue", Job("7", "COMPLETED", "NodeList=n1 exit_code=0"));
  });
  EXPECT_EQ(status_, kUnknownStatus);
  EXPECT_EQ(Event("done")["unknown"], 1);
}

TEST_F(WatcherTest, AJobThatNobodyKnows) {
  Write("queue", "");
  Run({"99"});
  EXPECT_THAT(Events(), ElementsAre("unknown", "done"));
  EXPECT_EQ(status_, kUnknownStatus);
  EXPECT_EQ(CallsOf("squeue"), 1u);
}

TEST_F(WatcherTest, ASlurmThatCannotBeAskedIsNotWaitedFor) {
  Program("squeue", "#!/bin/sh\necho 'squeue: fatal: no configuration' >&2\nexit 1\n");
  Run({"99"});
  EXPECT_THAT(Events(), ElementsAre("slurm", "done"));
  EXPECT_THAT(Event("slurm")["error"].get<std::string>(), HasSubstr("no configuration"));
  EXPECT_EQ(status_, kUnknownStatus);
}

TEST_F(WatcherTest, AJobOfLongAgo) {
  Write("queue", "");
  Write("accounts", "8841|8841|FAILED|3:0|1795826000|1795826100|n1|ada|\n");
  Run({"8841"});
  EXPECT_EQ(Event("ended")["status"], 3);
  EXPECT_THAT(Event("output")["error"].get<std::string>(), HasSubstr("classify"));
  EXPECT_EQ(status_, 3);
}

TEST_F(WatcherTest, TasksOfAnArrayThatWaitTogether) {
  const auto array = [this](const std::string& id, const std::string& task,
                            const std::string& state, const std::string& more) {
    std::string row = Job(id, state, "ArrayTaskID=" + task + " " + more);
    return row.replace(row.find("ArrayJobID=" + id), 11 + id.size(), "ArrayJobID=8841");
  };
  Write("queue", array("8841", "2-3%1", "PENDING", "Reason=JobArrayTaskLimit") +
                     array("8842", "1", "RUNNING", "NodeList=n1"));
  Run({"8841"}, [&](const json& line) {
    if (line["event"] != "state" || line["job"] != "8841_1") return;
    Write("queue", array("8842", "1", "COMPLETED", "NodeList=n1 exit_code=0") +
                       array("8843", "2", "FAILED", "NodeList=n1 exit_code=256") +
                       array("8841", "3", "COMPLETED", "NodeList=n1 exit_code=0"));
  });
  std::map<std::string, int> statuses;
  for (const json& line : lines_) {
    if (line["event"] == "ended") statuses[line["job"]] = line["status"];
  }
  EXPECT_THAT(statuses, ElementsAre(testing::Pair("8841_1", 0), testing::Pair("8841_2", 1),
                                    testing::Pair("8841_3", 0)));
  EXPECT_EQ(lines_[0]["job"], "8841_[2-3%1]");
  EXPECT_EQ(status_, 1);
}

}  // namespace
}  // namespace rankscope::watch
