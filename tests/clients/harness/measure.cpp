// Runs one program and writes what it cost: measure REPORT SECONDS -- PROGRAM ARGUMENTS.
//
// The report is one line: wall nanoseconds, user and system microseconds, peak resident KiB, wait
// status, 1 if the time ran out. The peak is getrusage's: of the largest process among PROGRAM and
// the children it waited for.
//
// Why not Python's own wait4: the kernel credits a new process with the resident size its parent
// had when it was forked, so that a 3 MiB program started from a 15 MiB interpreter seems to
// need 15. This program is small (link it statically), so what it passes on is below any client's.
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <initializer_list>

namespace {

volatile sig_atomic_t time_is_up = 0;
volatile pid_t child = 0;

void kill_group(int signal) {
  if (signal == SIGALRM) time_is_up = 1;
  if (child > 0) kill(-child, SIGKILL);
}

long long now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}

long long microseconds(const timeval& t) { return t.tv_sec * 1'000'000LL + t.tv_usec; }

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5 || strcmp(argv[3], "--") != 0) {
    fprintf(stderr, "usage: measure REPORT SECONDS -- PROGRAM ARGUMENTS\n");
    return 2;
  }
  int report = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (report < 0) {
    perror(argv[1]);
    return 2;
  }
  sigset_t ending;
  sigemptyset(&ending);
  for (int signal : {SIGALRM, SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action = {};
    sigaction(signal, nullptr, &action);
    if (action.sa_handler == SIG_IGN) continue;  // as under nohup
    action = {};
    action.sa_handler = kill_group;
    action.sa_flags = SA_RESTART;
    sigaction(signal, &action, nullptr);
    sigaddset(&ending, signal);
  }
  prctl(PR_SET_PDEATHSIG, SIGTERM);  // whoever asked may be killed
  // Until it is known which group to end.
  sigset_t before;
  sigprocmask(SIG_BLOCK, &ending, &before);

  long long start = now_ns();
  pid_t pid = fork();
  if (pid < 0) {
    perror("fork");
    return 2;
  }
  if (pid == 0) {
    sigprocmask(SIG_SETMASK, &before, nullptr);
    setpgid(0, 0);  // so that a client's own children end with it
    execvp(argv[4], argv + 4);
    perror(argv[4]);
    _exit(127);
  }
  setpgid(pid, pid);
  child = pid;
  sigprocmask(SIG_SETMASK, &before, nullptr);
  alarm(static_cast<unsigned>(atoi(argv[2])));

  int status = 0;
  rusage usage = {};
  while (wait4(pid, &status, 0, &usage) < 0) {
  }
  long long wall = now_ns() - start;
  child = 0;
  kill(-pid, SIGKILL);  // whatever it left behind
  dprintf(report, "%lld %lld %lld %ld %d %d\n", wall, microseconds(usage.ru_utime),
          microseconds(usage.ru_stime), usage.ru_maxrss, status, static_cast<int>(time_is_up));
  return 0;
}
