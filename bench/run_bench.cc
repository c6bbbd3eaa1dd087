// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What `rankscope run` adds to the shortest command: /bin/true wrapped against /bin/true, by turns,
// so that both meet the same machine. "load" is the program's own start (`run --help`), of which
// the wrapper can save nothing. "notifying" is the same without a daemon and with a configuration
// of channels, so that each run leaves a message and a process that sends it. The runs go below the
// working directory: start it on a tmpfs to see the cost without the disk, and under `chrt -f 50`
// on a machine that is not idle.
//
//     run_bench BINARY [ROUNDS]
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace {

// Whatever this machine has of its own is nobody's here.
void SetPlaces(const std::string& config, const std::string& state) {
  setenv("XDG_CONFIG_HOME", config.c_str(), 1);
  setenv("XDG_STATE_HOME", state.c_str(), 1);
  setenv("RANKSCOPE_SOCKET", (state + "/no-daemon.sock").c_str(), 1);
}

void WriteConfig(const std::string& folder) {
  std::filesystem::create_directories(folder + "/rankscope");
  std::ofstream(folder + "/rankscope/notify.yaml")
      << "channels: [{name: hook, kind: webhook, url: \"http://127.0.0.1:9/\"}]\n"
         "rules: [{channels: [hook]}]\n";
}

// That the sender of one run does not stand in the way of the next.
void LetSenderEnd() {
  std::this_thread::sleep_for(std::chrono::milliseconds(150));
}

double MillisecondsOf(const std::vector<const char*>& command) {
  const auto begin = std::chrono::steady_clock::now();
  const pid_t pid = fork();
  if (pid == 0) {
    const int null = open("/dev/null", O_WRONLY);
    dup2(null, STDOUT_FILENO);
    execv(command[0], const_cast<char* const*>(command.data()));
    _exit(127);
  }
  int status = 0;
  if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) {
    std::fprintf(stderr, "run_bench: %s failed, wait status %d\n", command[0], status);
    std::exit(1);
  }
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("usage: run_bench BINARY [ROUNDS]\n", stderr);
    return 2;
  }
  const int rounds = argc > 2 ? std::max(1, std::atoi(argv[2])) : 50;
  const std::string binary = std::filesystem::absolute(argv[1]);
  // On the disk of the build, not on a tmpfs: the header's fsync is part of the figure.
  std::string folder = (std::filesystem::current_path() / "run_bench-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr || chdir(folder.c_str()) != 0) {
    std::perror(folder.c_str());
    return 1;
  }
  const std::vector<const char*> bare = {"/bin/true", nullptr};
  const std::vector<const char*> load = {binary.c_str(), "run", "--help", nullptr};
  const std::vector<const char*> wrapped = {binary.c_str(), "run",       "--verdict", "none",
                                            "--",           "/bin/true", nullptr};
  const std::string config = folder + "/config", state = folder + "/state";
  WriteConfig(config);
  std::vector<double> bare_ms, load_ms, wrapped_ms, notifying_ms;
  for (int i = 0; i < rounds; ++i) {
    bare_ms.push_back(MillisecondsOf(bare));
    load_ms.push_back(MillisecondsOf(load));
    SetPlaces(folder + "/none", state);
    wrapped_ms.push_back(MillisecondsOf(wrapped));
    SetPlaces(config, state);
    notifying_ms.push_back(MillisecondsOf(wrapped));
    LetSenderEnd();
  }
  const double base = Median(bare_ms);
  std::printf(
      "run around /bin/true, median of %d: bare %.2f ms, load %.2f ms, wrapped %.2f ms: over %.2f "
      "ms (target 2); notifying %.2f ms: over wrapped %.2f ms (target 2)\n",
      rounds, base, Median(load_ms), Median(wrapped_ms), Median(wrapped_ms) - base,
      Median(notifying_ms), Median(notifying_ms) - Median(wrapped_ms));
  std::filesystem::remove_all(folder);
  return 0;
}
