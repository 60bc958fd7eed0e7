import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing

extension ProcessTests {
    /// Recorders and workers that are killed at each step of the making of their files.
    @Suite(.timeLimit(.minutes(5))) struct KilledStarts {
        private let home: TemporaryDirectory
        private let folder: TemporaryDirectory

        /// Kills its process before that call of those which make files and name them, counted from the first file
        /// without a name; and has no such files where that is told, as FAT and NFS have none.
        private static let shim = """
            #define _GNU_SOURCE
            #include <dlfcn.h>
            #include <errno.h>
            #include <fcntl.h>
            #include <signal.h>
            #include <stdarg.h>
            #include <stdatomic.h>
            #include <stdlib.h>
            static atomic_int steps;
            static void step(int begins) {
                const char *last = getenv("KILL_AT");
                if (!last || (!begins && !atomic_load(&steps))) return;
                if (atomic_fetch_add(&steps, 1) + 1 == atoi(last)) raise(SIGKILL);
            }
            #define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
            int open(const char *path, int flags, ...) {
                va_list more;
                va_start(more, flags);
                unsigned mode = va_arg(more, unsigned);
                va_end(more);
                int isUnnamed = (flags & O_TMPFILE) == O_TMPFILE;
                if (isUnnamed || flags & O_CREAT) step(isUnnamed);
                if (isUnnamed && getenv("ALL_NAMED")) {
                    errno = EOPNOTSUPP;
                    return -1;
                }
                return REAL(open)(path, flags, mode);
            }
            int fsync(int fd) { step(0); return REAL(fsync)(fd); }
            int rename(const char *from, const char *to) { step(0); return REAL(rename)(from, to); }
            int renameat2(int from, const char *old, int to, const char *name, unsigned flags) {
                step(0);
                return REAL(renameat2)(from, old, to, name, flags);
            }
            int unlink(const char *path) { step(0); return REAL(unlink)(path); }
            int linkat(int from, const char *path, int to, const char *name, int flags) {
                step(0);
                return REAL(linkat)(from, path, to, name, flags);
            }
            """

        init() throws {
            home = try TemporaryDirectory()
            folder = try TemporaryDirectory()
        }

        private static var hasCompiler: Bool { access("/usr/bin/cc", X_OK) == 0 }

        /// A program that is killed at the step that the shell's code gives.
        ///
        /// - Parameter isUnnamed: whether files may be without a name.
        private func program(_ name: String, step: String, isUnnamed: Bool) async throws -> String {
            let (shim, source) = ("\(folder.path)/shim.so", "\(folder.path)/shim.c")
            try File.replace(source, with: Array(Self.shim.utf8), mode: 0o600)
            let compiler = try RunningProgram(
                "/usr/bin/cc", ["-shared", "-fPIC", "-w", "-o", shim, source, "-ldl"],
                environment: ["PATH": "/usr/bin:/bin"],
                scratch: folder)
            let result = try await compiler.end()
            try #require(result.status == 0, "\(result.standardError)")
            let script = """
                #!/bin/sh
                \(step)
                \(isUnnamed ? "" : "export ALL_NAMED=1")
                LD_PRELOAD=\(shim) exec \(Programs.path(name)) "$@"
                """
            let path = "\(folder.path)/\(name)"
            try File.replace(path, with: Array(script.utf8), mode: 0o700)
            return path
        }

        /// Every file belongs to an entry and is the bus's alone, and every entry has its files.
        private func checkLibrary(_ client: RawClient, isUnnamed: Bool) throws {
            let entries = try client.call("library.list", ["limit": 1000], within: 30)["entries"]?.array ?? []
            for entry in entries {
                #expect(["finished", "recovered", "damaged"].contains(entry["state"]?.string), "\(entry)")
            }
            let known = Set(
                entries.flatMap { entry in
                    ["path", "sideCar", "cover", "livePhotoMovie"].compactMap { entry[$0]?.string }
                }
            )
            let days = (Directory.names("\(home.path)/library") ?? []).filter { $0.hasPrefix("2") }
            let files = days.flatMap { day in
                (Directory.names("\(home.path)/library/\(day)") ?? []).map { "\(home.path)/library/\(day)/\($0)" }
            }
            // Those are left where a file can't be without a name, by who dies before it has entered them.
            let seen = files.filter { isUnnamed || !$0.contains("/.") || !$0.hasSuffix(".part") }
            #expect(Set(seen) == known)
            for file in files {
                var status = stat()
                #expect(lstat(file, &status) == 0 && status.st_mode == S_IFREG | 0o600, "\(file)")
            }
        }

        private func isSettled(_ client: RawClient) throws -> Bool {
            let entries = try client.call("library.list", ["limit": 1000], within: 30)["entries"]?.array ?? []
            return entries.allSatisfy { entry in
                entry["state"] != "missing" && entry["state"] != "recording"
                    && entry["problem"]?.string?.contains("not mended yet") != true
            }
        }

        /// The library is whole once the bus has come back, also in what it could not see to before it died.
        private func checkLibraryOfNextStart(_ bus: BusHarness, isUnnamed: Bool) async throws {
            try await bus.killCoordinator()
            try await bus.startCoordinator()
            let client = try RawClient(path: bus.directory.commandSocket)
            try await eventually { try isSettled(client) }
            try checkLibrary(client, isUnnamed: isUnnamed)
        }

        @Test(.enabled(if: hasCompiler, "cc is not there"), arguments: [true, false])
        func `a movie whose recorder is killed at any step leaves nothing that lacks a file`(
            _ isUnnamed: Bool
        ) async throws {
            let step = "\(folder.path)/step"
            let recorder = try await program(
                "camerabus-recorder", step: "export KILL_AT=$(cat \(step))", isUnnamed: isUnnamed)
            let bus = try await BusHarness(
                virtual: 1, arguments: ["--state-dir", home.path, "--recorder", recorder])
            let client = try RawClient(path: bus.directory.commandSocket)
            var killed = 0
            for number in 1...60 {
                try File.replace(step, with: Array("\(number)\n".utf8), mode: 0o600)
                try client.start("movie.start", ["device": "cam0", "fragmentInterval": 1000])
                if case .success(let movie) = try client.reply(within: 60).result {
                    try client.start("movie.stop", ["movie": movie["movie"] ?? .null])
                    if case .success = try client.reply(within: 60).result { break }
                }
                killed += 1
            }
            #expect(killed > 5 && killed < 60)
            try await checkLibraryOfNextStart(bus, isUnnamed: isUnnamed)
            try await bus.stop()
        }

        @Test(.enabled(if: hasCompiler, "cc is not there"), arguments: [true, false])
        func `a photo whose worker is killed at any step of its storing is whole or gone`(
            _ isUnnamed: Bool
        ) async throws {
            let worker = try await program(
                "camerabus-worker",
                step: """
                    for each; do
                        case $each in --device=cam*) export KILL_AT=$((${each#--device=cam} + 1)) ;; esac
                    done
                    """, isUnnamed: isUnnamed)
            let count = 14
            let bus = try await BusHarness(
                virtual: count, arguments: ["--state-dir", home.path, "--worker", worker])
            let clients = try (0..<count).map { _ in try RawClient(path: bus.directory.commandSocket) }
            for (number, client) in clients.enumerated() {
                try client.start("photo.capture", ["device": .string("cam\(number)")])
            }
            let results = try clients.map { try $0.reply(within: 60).result }
            let failed = results.count { if case .failure = $0 { true } else { false } }
            #expect(failed > 5, "\(results)")
            try await checkLibraryOfNextStart(bus, isUnnamed: isUnnamed)
            try await bus.stop()
        }
    }
}
