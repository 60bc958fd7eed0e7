#include "include/CTOML.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sstream>
#include <string>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 1
#include <toml++/toml.h>

namespace {

// What the process says: one of these, text, and a NUL, without which it died on the way.
constexpr char kindJSON = 'J', kindError = 'E';

// A byte of a file of a MiB becomes six at most (`\u001f`), and quotation marks and commas come between.
constexpr size_t mostBytes = 16 << 20;

// The first line with something below so many levels; 0: there is nothing. Goes no deeper itself.
unsigned too_deep(const toml::node &node, int levels) {
    if (levels == 0) return node.source().begin.line ? node.source().begin.line : 1;
    if (auto table = node.as_table()) {
        for (auto &&[key, value] : *table)
            if (unsigned line = too_deep(value, levels - 1)) return line;
    } else if (auto array = node.as_array()) {
        for (auto &&value : *array)
            if (unsigned line = too_deep(value, levels - 1)) return line;
    }
    return 0;
}

std::string answer(const char *text, size_t length, int levels) {
    std::ostringstream out;
    try {
        toml::table table = toml::parse(std::string_view(text, length));
        // Indented by its depth, a text of some KiB would become hundreds of MiB.
        auto flags = toml::json_formatter::default_flags & ~toml::format_flags::indentation;
        if (unsigned line = too_deep(table, levels))
            out << kindError << "line " << line << ": nested deeper than " << levels << " levels";
        else
            out << kindJSON << toml::json_formatter(table, flags);
    } catch (const toml::parse_error &error) {
        out << kindError << "line " << error.source().begin.line << ": " << error.description();
    } catch (const std::exception &error) {
        out << kindError << error.what();
    }
    return out.str();
}

void write_all(int descriptor, const char *bytes, size_t count) {
    while (count > 0) {
        ssize_t written = write(descriptor, bytes, count);
        if (written < 0 && errno != EINTR) return;
        if (written > 0) bytes += written, count -= (size_t)written;
    }
}

// Between fork and _exit: only this thread is left, and nothing of the program's own is used. glibc's malloc may be.
[[noreturn]] void read_as_child(const char *text, size_t length, int levels, int descriptor) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    // No file and no report of a crash: it is expected.
    prctl(PR_SET_DUMPABLE, 0);
    for (int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE}) std::signal(signal, SIG_DFL);
    rlimit seconds{5, 5};
    setrlimit(RLIMIT_CPU, &seconds);
    // It may be one of the first three, if the program has none of these.
    descriptor = fcntl(descriptor, F_DUPFD, STDERR_FILENO + 1);
    // An assertion prints its text; and what the program holds, locks too, is not to be held by this process.
    int nothing = open("/dev/null", O_WRONLY);
    if (nothing >= 0) dup2(nothing, STDERR_FILENO);
    if (descriptor >= 0 && dup2(descriptor, STDOUT_FILENO) >= 0) {
        close_range(STDERR_FILENO + 1, ~0U, 0);
        std::string said = answer(text, length, levels);
        write_all(STDOUT_FILENO, said.c_str(), said.size() + 1);
    }
    _exit(0);
}

int64_t now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

// All that comes until the end. False: the time was over before.
bool read_all(int descriptor, int64_t deadline, std::string &bytes) {
    char part[65536];
    while (bytes.size() <= mostBytes) {
        // What is there already is read, however late it is: this process may have been stopped meanwhile.
        int64_t left = deadline - now();
        pollfd item{descriptor, POLLIN, 0};
        int count = poll(&item, 1, left > 0 ? (int)left : 0);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return false;
        ssize_t length = read(descriptor, part, sizeof part);
        if (length < 0 && errno == EINTR) continue;
        if (length <= 0) break;
        bytes.append(part, (size_t)length);
    }
    return true;
}

}  // namespace

int ctoml_read(const char *text, size_t length, int levels, int milliseconds, char **answer, size_t *bytes) {
    *answer = nullptr;
    *bytes = 0;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) == -1) return -1;
    pid_t child = fork();
    if (child == 0) read_as_child(text, length, levels, ends[1]);
    int code = child == -1 ? errno : 0;
    close(ends[1]);
    std::string said;
    bool isInTime = true;
    try {
        if (child > 0) isInTime = read_all(ends[0], now() + milliseconds, said);
    } catch (const std::exception &) {
        code = ENOMEM;
        said.clear();
    }
    close(ends[0]);
    if (child > 0) {
        kill(child, SIGKILL);
        while (waitpid(child, nullptr, 0) == -1 && errno == EINTR) {}
    }
    if (child == -1 || (said.empty() && code == ENOMEM)) {
        errno = code;
        return -1;
    }
    if (!isInTime) return CTOML_LATE;
    if (said.size() < 2 || said.size() > mostBytes || said.back() != '\0') return CTOML_DIED;
    *bytes = said.size() - 2;
    *answer = (char *)malloc(*bytes + 1);
    if (!*answer) {
        errno = ENOMEM;
        return -1;
    }
    memcpy(*answer, said.data() + 1, *bytes);
    return said[0] == kindJSON ? CTOML_JSON : CTOML_ERROR;
}
