/* Preloaded into systemd-oomd: a clock that moves only when the program waits, to its next timer.
 *
 * Before the clock moves, the changes that are due are written to the files that the program reads.
 * A signal is written to the log instead of being sent. The group of its process is removed before the
 * clock moves again, as the service manager removes the group of a unit that has ended.
 * Environment: OOMD_CHANGES (lines "ms path text", `|` for a line break), OOMD_LOG, OOMD_END (ms). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define MAX_TIMERS 64
#define CGROUP2_MAGIC 0x63677270
/* A whole number of minutes, so that times from here on lie on sd-event's grid like times from 0. */
#define BASE_NS (600ull * 1000000000ull)

static uint64_t now_ns = BASE_NS;
static uint64_t timers[MAX_TIMERS];
static FILE *changes;
static char pending[4096];

static uint64_t ns_of(const struct timespec *at) {
    return (uint64_t)at->tv_sec * 1000000000ull + (uint64_t)at->tv_nsec;
}

static uint64_t ms_now(void) { return (now_ns - BASE_NS) / 1000000; }

static char dead[64][4096];
static int nr_dead;

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *at) {
    (void)st, (void)kind, (void)at;
    return remove(path);
}

static void write_file(const char *path, char *text) {
    FILE *file = fopen(path, "w");
    if (!file)
        return;
    for (char *at = text; *at; at++)
        if (*at == '|')
            *at = '\n';
    fputs(text, file);
    fclose(file);
}

__attribute__((constructor)) static void apply_changes(void) {
    if (!changes && !(changes = fopen(getenv("OOMD_CHANGES"), "r")))
        _exit(3);
    for (;;) {
        if (!*pending && !fgets(pending, sizeof pending, changes))
            return;
        pending[strcspn(pending, "\n")] = 0;
        char *path = strchr(pending, ' ') + 1;
        if (strtoull(pending, NULL, 10) > ms_now())
            return;
        char *text = strchr(path, ' ');
        *text++ = 0;
        write_file(path, text);
        *pending = 0;
    }
}

int clock_gettime(clockid_t clock, struct timespec *at) {
    (void)clock;
    at->tv_sec = (time_t)(now_ns / 1000000000ull);
    at->tv_nsec = (long)(now_ns % 1000000000ull);
    return 0;
}

static int (*real_settime)(int, int, const struct itimerspec *, struct itimerspec *);

int timerfd_settime(int fd, int flags, const struct itimerspec *new, struct itimerspec *old) {
    (void)flags;
    if (!real_settime)
        real_settime = dlsym(RTLD_NEXT, "timerfd_settime");
    uint64_t due = ns_of(&new->it_value);
    timers[fd] = due;
    struct itimerspec off = {0};
    if (due != 0 && due <= now_ns)
        off.it_value.tv_nsec = 1;
    return real_settime(fd, 0, &off, old);
}

int epoll_wait(int epfd, struct epoll_event *events, int max, int timeout) {
    static int (*real)(int, struct epoll_event *, int, int);
    static int nr_waits;
    if (!real)
        real = dlsym(RTLD_NEXT, "epoll_wait");
    if (timeout == 0)
        return real(epfd, events, max, 0);
    /* What others send in reply takes no time of the fake clock. */
    int got = real(epfd, events, max, nr_waits++ < 8 ? 300 : 2);
    if (got != 0)
        return got;
    uint64_t next = UINT64_MAX;
    int fd = -1;
    for (int at = 0; at < MAX_TIMERS; at++)
        if (timers[at] > now_ns && timers[at] < next)
            next = timers[at], fd = at;
    if (fd < 0 || next - BASE_NS > strtoull(getenv("OOMD_END"), NULL, 10) * 1000000ull)
        _exit(0);
    now_ns = next;
    while (nr_dead > 0)
        nftw(dead[--nr_dead], remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    apply_changes();
    struct itimerspec soon = {.it_value = {.tv_nsec = 1}};
    real_settime(fd, 0, &soon, NULL);
    return real(epfd, events, max, 1000);
}

int statfs64(const char *path, struct statfs64 *of) {
    static int (*real)(const char *, struct statfs64 *);
    if (!real)
        real = dlsym(RTLD_NEXT, "statfs64");
    int result = real(path, of);
    if (!strncmp(path, "/sys/fs/cgroup", 14))
        of->f_type = CGROUP2_MAGIC;
    return result;
}

int kill(pid_t pid, int signal) {
    char path[64], group[4096] = "";
    snprintf(path, sizeof path, "/run/pids/%d", pid);
    FILE *file = fopen(path, "r");
    if (!file || !fgets(group, sizeof group, file))
        return 0;
    fclose(file);
    FILE *log = fopen(getenv("OOMD_LOG"), "a");
    fprintf(log, "%llu %d %d\n", (unsigned long long)ms_now(), pid, signal);
    fclose(log);
    if (nr_dead < 64)
        strcpy(dead[nr_dead++], group);
    return 0;
}
