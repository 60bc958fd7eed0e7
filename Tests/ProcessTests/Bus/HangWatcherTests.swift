import BusServer
import CameraBusTesting
import Glibc
import LinuxIO
import Testing

extension ProcessTests {
    /// Real processes that hang, or get no processor, watched with short limits.
    @Suite(.timeLimit(.minutes(5))) struct HangWatching {
        private static let limits = HangWatcher.Limits(silence: 300, loading: 300, interval: 50, looks: 5)

        /// A process, what is found of it, and a loop that watches it.
        private final class Watched {
            let loop: Loop
            let child: ChildProcess
            private(set) var holds: [HangEvidence.Hold] = []
            private(set) var hangs = 0
            private(set) lazy var watcher = HangWatcher(loop, limits: limits) { [child] in
                child.process.pid
            } onSlow: { [weak self] hold, _ in
                self?.holds.append(hold)
            } onHang: { [weak self] in
                self?.hangs += 1
            }

            init(_ script: String) throws {
                loop = try Loop()
                child = try ChildProcess(program: "/bin/sh", arguments: ["-c", script])
            }

            deinit {
                child.process.send(SIGKILL)
                _ = waitUntilReadable(child.process.rawValue, by: .usual)
                _ = child.reap()
            }
        }

        @Test(arguments: ["exec sleep 1000", Starvation.busyLoop])
        func `a process that sleeps or spins for ever hangs, and is told once`(_ script: String) throws {
            let watched = try Watched(script)
            watched.watcher.begin(isLoading: true)
            #expect(try watched.loop.run { watched.hangs > 0 })
            var isOver = false
            watched.loop.schedule(afterMilliseconds: 1000) { isOver = true }
            #expect(try watched.loop.run { isOver })
            #expect(watched.hangs == 1)
        }

        @Test func `a stopped process hangs`() throws {
            let watched = try Watched("while kill -0 $PPID; do sleep 0.01; done 2>/dev/null")
            watched.child.process.send(SIGSTOP)
            watched.watcher.begin()
            #expect(try watched.loop.run { watched.hangs > 0 })
        }

        @Test func `a process that reports is not looked at, and one that is not watched neither`() throws {
            let watched = try Watched("exec sleep 1000")
            watched.watcher.begin()
            var reports = 0
            func report() {
                watched.watcher.reported()
                reports += 1
                if reports < 30 { watched.loop.schedule(afterMilliseconds: 50) { report() } }
            }
            report()
            #expect(try watched.loop.run { reports == 30 })
            watched.watcher.end()
            var isOver = false
            watched.loop.schedule(afterMilliseconds: 1500) { isOver = true }
            #expect(try watched.loop.run { isOver })
            #expect(watched.hangs == 0 && watched.holds.isEmpty)
        }

        @Test func `a process that gets no processor does not hang, and one that gets it again does`() throws {
            let watched = try Watched(Starvation.busyLoop)
            let starvation = try Starvation(of: [watched.child.process.pid])
            watched.watcher.begin()
            #expect(try watched.loop.run { !watched.holds.isEmpty })
            var isOver = false
            watched.loop.schedule(afterMilliseconds: 3000) { isOver = true }
            #expect(try watched.loop.run { isOver })
            #expect(watched.hangs == 0 && watched.holds.count == 1)
            starvation.end()
            #expect(try watched.loop.run { watched.hangs > 0 })
        }
    }
}
