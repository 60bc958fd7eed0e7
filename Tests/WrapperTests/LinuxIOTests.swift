import CameraBusTesting
import Glibc
import LinuxIO
import Synchronization
import Testing

@Suite struct Files {
    @Test func `a lock file keeps a second holder out and lets the next one in`() throws {
        let folder = try TemporaryDirectory()
        var first: LockFile? = try LockFile("\(folder.path)/lock")
        #expect(throws: SystemError.self) { try LockFile("\(folder.path)/lock") }
        _ = first
        first = nil
        _ = try LockFile("\(folder.path)/lock")
    }

    @Test func `what is no file can't be locked, and makes nobody wait`() throws {
        let folder = try TemporaryDirectory()
        let path = "\(folder.path)/lock"
        #expect(mkfifo(path, 0o600) == 0)
        #expect { try LockFile(path) } throws: { ($0 as? SystemError)?.code == EINVAL }
        if case .somebody = LockFile.holder(of: path) { Issue.record("somebody holds a pipe") }
    }

    @Test func `a signed lock file names who holds it`() throws {
        let folder = try TemporaryDirectory()
        let path = "\(folder.path)/lock"
        func isNobody() -> Bool { if case .nobody = LockFile.holder(of: path) { true } else { false } }
        #expect(isNobody())
        var lock: LockFile? = try LockFile(path, isSigned: true)
        guard case .somebody(let process?) = LockFile.holder(of: path) else {
            Issue.record("nobody is named")
            return
        }
        #expect(process.pid == CurrentProcess.pid)
        // A process of that number which started at another time is not who signed it.
        try Array("\(CurrentProcess.pid) 1\n".utf8).withUnsafeBytes { bytes in
            let file = try FileDescriptor(opening: path, O_WRONLY)
            #expect(pwrite(file.rawValue, bytes.baseAddress, bytes.count, 0) == bytes.count)
        }
        if case .somebody(let other?) = LockFile.holder(of: path) { Issue.record("\(other.pid) is named") }
        #expect(!isNobody())
        _ = lock
        lock = nil
        #expect(isNobody())
    }

    @Test func `only a plain file of one's own is read as such`() throws {
        let folder = try TemporaryDirectory()
        let path = "\(folder.path)/state"
        func code() -> Int32? {
            do throws(SystemError) {
                _ = try File.readOwn(path, limit: 4)
                return nil
            } catch {
                return error.code
            }
        }
        #expect(code() == ENOENT)
        try File.replace(path, with: [1, 2], mode: 0o600)
        #expect(try File.readOwn(path, limit: 4) == [1, 2])
        try File.replace(path, with: [1, 2, 3, 4, 5], mode: 0o600)
        #expect(code() == EFBIG)
        File.remove(path)
        #expect(mkfifo(path, 0o600) == 0 && code() == EINVAL)
        File.remove(path)
        #expect(symlink("/etc/hostname", path) == 0 && code() == ELOOP)
        File.remove(path)
    }

    @Test func `replacing a file leaves no temporary one and keeps its mode`() throws {
        let folder = try TemporaryDirectory()
        let path = "\(folder.path)/state"
        try File.replace(path, with: [1, 2], mode: 0o600)
        try File.replace(path, with: [3], mode: 0o600)
        #expect(try File.read(path, limit: 10) == [3])
        #expect(throws: SystemError.self) { try File.read(path, limit: 0) }
        var status = stat()
        stat(path, &status)
        #expect(status.st_mode & 0o777 == 0o600)
        #expect(access(path + ".new", F_OK) == -1)
    }

    @Test func `a new file has its name when it is published, and takes nobody's`() throws {
        let folder = try TemporaryDirectory()
        let path = "\(folder.path)/new"
        do {
            let given = try NewFile(path)
            try given.write(Array("given up".utf8))
        }
        let (file, other) = (try NewFile(path), try NewFile(path))
        try file.write(Array("wh".utf8))
        try file.write(Array("ole".utf8))
        #expect(access(path, F_OK) != 0)
        try file.publish()
        #expect(try File.read(path, limit: 100) == Array("whole".utf8))
        let published = try FileDescriptor(opening: path, O_RDONLY)
        #expect(try file.identity().isSame(as: FileIdentity(published.rawValue)) && file.size() == 5)
        let late = #expect(throws: SystemError.self) { try other.publish() }
        #expect(late?.code == EEXIST)
        other.withdraw()
        #expect(access(path, F_OK) == 0, "it is not its own")
        let third = #expect(throws: SystemError.self) { try NewFile(path) }
        #expect(third?.code == EEXIST)
        file.withdraw()
        #expect(access(path, F_OK) != 0)
    }

    @Test func `a folder below another one is reached without links`() throws {
        let folder = try TemporaryDirectory()
        let root = "\(folder.path)/root"
        for path in [root, "\(root)/a", "\(root)/a/b", "\(folder.path)/outside"] {
            try check("mkdir", path) { mkdir(path, 0o700) }
        }
        symlink("a", "\(root)/inside")
        symlink("../outside", "\(root)/out")
        try File.replace("\(root)/file", with: [1], mode: 0o600)
        for (path, real) in [(root, root), ("\(root)/a", "\(root)/a"), ("\(root)//a/./b/", "\(root)/a/b")] {
            #expect(try FolderBeneath(path, root: root).realPath() == real)
        }
        func code(_ path: String) -> Int32? {
            #expect(throws: SystemError.self) { try FolderBeneath("\(root)/\(path)", root: root) }?.code
        }
        #expect(code("inside/b") == ELOOP && code("out") == ELOOP)
        #expect(code("..") == EXDEV && code("a/../../outside") == EXDEV)
        #expect(code("none/b") == ENOENT && code("file") == ENOTDIR)
        #expect(code(String(repeating: "x", count: 300)) == ENAMETOOLONG)
    }

    @Test func `a private directory is refused when it is a link`() throws {
        let folder = try TemporaryDirectory()
        symlink("/tmp", "\(folder.path)/link")
        #expect(throws: SystemError.self) { try PrivateDirectory.make("\(folder.path)/link", mode: 0o700) }
    }

    @Test func `a socket is not made over a file, and not on a path that is too long`() throws {
        let folder = try TemporaryDirectory()
        try File.replace("\(folder.path)/file", with: [], mode: 0o600)
        #expect(throws: SystemError.self) { _ = try UnixSocket.listen(at: "\(folder.path)/file", mode: 0o600) }
        let long = "\(folder.path)/\(String(repeating: "x", count: 108))"
        #expect(throws: SystemError.self) { _ = try UnixSocket.listen(at: long, mode: 0o600) }
    }

    @Test func `a socket has its mode, is live while somebody listens, and replaces a dead one`() throws {
        let folder = try TemporaryDirectory()
        let path = "\(folder.path)/s"
        do {
            let listener = try UnixSocket.listen(at: path, mode: 0o660)
            #expect(UnixSocket.isLive(path))
            _ = listener.rawValue
        }
        var status = stat()
        #expect(stat(path, &status) == 0 && status.st_mode & 0o777 == 0o660)
        #expect(!UnixSocket.isLive(path))
        let again = try UnixSocket.listen(at: path, mode: 0o600)
        #expect(UnixSocket.isLive(path))
        _ = again.rawValue
    }

    @Test func `a socket that replaces a dead one is never seen missing`() throws {
        let folder = try TemporaryDirectory()
        let path = "\(folder.path)/s"
        _ = try UnixSocket.listen(at: path, mode: 0o600)
        let isOver = Atomic<Bool>(false)
        let missed = Atomic<Int>(0)
        let watcher = try NamedThread(name: "watcher") {
            while !isOver.load(ordering: .relaxed) {
                if access(path, F_OK) != 0 { missed.add(1, ordering: .relaxed) }
            }
        }
        for _ in 0..<3000 { _ = try UnixSocket.listen(at: path, mode: 0o600) }
        isOver.store(true, ordering: .relaxed)
        watcher.join()
        #expect(missed.load(ordering: .relaxed) == 0)
        #expect(access("\(folder.path)/~", F_OK) != 0)
    }
}

@Suite struct Processes {
    @Test func `a child's end is seen and told as it was`() throws {
        for (command, ending) in [("exit 7", ChildProcess.Ending.exited(7)), ("kill -9 $$", .signalled(9))] {
            let child = try ChildProcess(program: "/bin/sh", arguments: ["-c", command])
            var item = pollfd(fd: child.process.rawValue, events: Int16(POLLIN), revents: 0)
            #expect(poll(&item, 1, 10_000) == 1)
            #expect(child.process.hasEnded)
            #expect(child.reap() == ending)
        }
    }

    @Test func `private arguments reach a program, and its command line shows none of them`() throws {
        let secrets = ["--path=/srv/a b", "", "x\u{E9}\n", String(repeating: "long", count: 1 << 18)]
        let script = "tr '\\0' '|' </proc/$$/cmdline; echo; tr '\\0' '|' </dev/fd/3"
        let output = try ProcessOutput(
            program: "/bin/sh", arguments: ["-c", script], privateArguments: secrets, limit: 4 << 20)
        var item = pollfd(fd: output.rawValue, events: Int16(POLLIN), revents: 0)
        while poll(&item, 1, 10_000) == 1, !output.read() {}
        let lines = String(decoding: output.bytes, as: UTF8.self).split(separator: "\n", maxSplits: 1)
        #expect(lines.first?.hasSuffix("|--arguments-at=3|") == true && lines.first?.contains("srv") == false)
        #expect(lines.last ?? "" == secrets.map { "\($0)|" }.joined())
        // Nobody changes them on their way.
        let writer = try ChildProcess(
            program: "/bin/sh", arguments: ["-c", "echo x >/dev/fd/3"], privateArguments: secrets)
        var ended = pollfd(fd: writer.process.rawValue, events: Int16(POLLIN), revents: 0)
        #expect(poll(&ended, 1, 10_000) == 1 && writer.reap() != .exited(0))
    }

    @Test func `a process is named by its start time too`() {
        let pid = CurrentProcess.pid
        #expect(ProcessTable.startTime(of: pid).map { $0 <= ProcessTable.now() } == true)
        #expect(ProcessTable.startTime(of: 0x3FFF_FFFF) == nil)
    }

    @Test func `a thread's times are read from its texts`() {
        let stat = "71 (a ) (R b) S 1 2 3 0 -1 4194368 10 0 7 0 123 45 0 0 20 0 9 0 55 1 2 3 4 5 6"
        let accounted = ThreadTimes(stat: stat, schedstat: "1690000001 250 9\n", ticksPerSecond: 100)
        #expect(
            accounted
                == ThreadTimes(
                    name: "a ) (R b", state: .sleeping, processor: 1_690_000_001, queued: 250, turns: 9, majorFaults: 7)
        )
        // A kernel that accounts no time in the queue has zeros, or no file.
        for schedstat in ["0 0 0\n", nil, "", "1 2", "a b c"] {
            let times = ThreadTimes(stat: stat, schedstat: schedstat, ticksPerSecond: 100)
            #expect(
                times == ThreadTimes(name: "a ) (R b", state: .sleeping, processor: 1_680_000_000, majorFaults: 7))
        }
        let letters: [(String, ThreadTimes.State)] = [
            ("R", .runnable), ("D", .blocked), ("T", .stopped), ("t", .stopped), ("Z", .ended), ("I", .sleeping),
        ]
        for (letter, state) in letters {
            let text = stat.replacing(") S ", with: ") \(letter) ")
            #expect(ThreadTimes(stat: text, schedstat: nil, ticksPerSecond: 100)?.state == state)
        }
        for text in ["", "71 (x) S 1 2", stat.replacing("123", with: "-"), stat.replacing(") S ", with: ") ? ")] {
            #expect(ThreadTimes(stat: text, schedstat: nil, ticksPerSecond: 100) == nil)
        }
    }

    @Test func `a process's threads are read, and those of one that is gone are not`() throws {
        let pid = CurrentProcess.pid
        let before = try #require(ProcessTable.threads(of: pid)?[pid])
        #expect(before.processor > 0)
        #expect(ProcessTable.threads(of: 0x3FFF_FFFF) == nil)
        let child = try ChildProcess(program: "/bin/sh", arguments: ["-c", "kill -STOP $$"])
        defer {
            child.process.send(SIGKILL)
            #expect(waitUntilReadable(child.process.rawValue, by: .usual))
            _ = child.reap()
        }
        var change = siginfo_t()
        #expect(waitid(P_PID, id_t(child.process.pid), &change, WSTOPPED | WNOWAIT) == 0)
        #expect(ProcessTable.threads(of: child.process.pid)?[child.process.pid]?.state == .stopped)
    }

    @Test func `output is read to its end`() throws {
        let output = try ProcessOutput(program: "/bin/sh", arguments: ["-c", "printf 12345"])
        var item = pollfd(fd: output.rawValue, events: Int16(POLLIN), revents: 0)
        repeat { poll(&item, 1, 10_000) } while !output.read()
        var ending = pollfd(fd: output.process.rawValue, events: Int16(POLLIN), revents: 0)
        #expect(poll(&ending, 1, 10_000) == 1)
        output.reap()
        #expect(output.isComplete)
        #expect(output.bytes == Array("12345".utf8))
        output.forget(3)
        #expect(output.bytes == Array("45".utf8))
        output.forget(9)
        #expect(output.bytes == [])
    }

    @Test func `output that is longer than a pipe holds waits for its reader`() throws {
        // The program writes a whole megabyte at once, as the librarian does, and ends if that fails.
        let output = try ProcessOutput(
            program: "/bin/dd", arguments: ["if=/dev/zero", "bs=1M", "count=1", "status=none"])
        var item = pollfd(fd: output.rawValue, events: Int16(POLLIN), revents: 0)
        repeat { poll(&item, 1, 10_000) } while !output.read()
        #expect(output.isComplete && output.bytes.count == 1 << 20)
    }

    @Test func `what can't be written at once is written when the reader takes it`() throws {
        var ends: [Int32] = [-1, -1]
        #expect(pipe(&ends) == 0)
        let reading = FileDescriptor(owning: ends[0])
        let writing = FileDescriptor(owning: ends[1])
        #expect(fcntl(writing.rawValue, F_SETFL, O_NONBLOCK) == 0)
        let bytes = (0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        let target = writing.rawValue
        let writer = try NamedThread(name: "writer") { try? FileDescriptor.writeAll(bytes, to: target) }
        var got: [UInt8] = []
        while got.count < bytes.count, waitUntilReadable(reading.rawValue, by: .usual) {
            var buffer = [UInt8](repeating: 0, count: 100_000)
            got += buffer[..<max(0, read(reading.rawValue, &buffer, buffer.count))]
        }
        writer.join()
        #expect(got == bytes)
    }

    @Test func `readiness reaches the service manager's socket, an abstract one too`() throws {
        let folder = try TemporaryDirectory()
        for path in ["\(folder.path)/notify", "@cbt-notify-\(CurrentProcess.pid)"] {
            let raw = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
            let receiver = FileDescriptor(owning: raw)
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            var bytes = Array(path.utf8)
            if path.hasPrefix("@") { bytes[0] = 0 }
            withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
            let length = socklen_t(2 + bytes.count + (bytes[0] == 0 ? 0 : 1))
            let bound = withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(receiver.rawValue, $0, length) }
            }
            #expect(bound == 0)
            let manager = ServiceManager { ["NOTIFY_SOCKET": path, "WATCHDOG_USEC": "3000000"][$0] }
            #expect(manager.watchdogInterval == 1_500_000_000)
            manager.notify("READY=1")
            var buffer = [UInt8](repeating: 0, count: 64)
            let count = recv(receiver.rawValue, &buffer, buffer.count, Int32(truncatingIfNeeded: MSG_DONTWAIT))
            #expect(count == 7 && String(decoding: buffer[..<7], as: UTF8.self) == "READY=1")
        }
    }
}

@Suite struct Holders {
    @Test func `who has a device's node open is found, under whatever name, until it is closed`() throws {
        // A node that no other test opens.
        let path = "/dev/full"
        #expect(!ProcessTable.holders(of: path).processes.contains { $0.pid == CurrentProcess.pid })
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        try #require(descriptor >= 0)
        let holder = try #require(ProcessTable.holders(of: path).processes.first { $0.pid == CurrentProcess.pid })
        #expect(holder.uid == CurrentProcess.uid && holder.name == ProcessTable.name(of: CurrentProcess.pid))
        close(descriptor)
        #expect(!ProcessTable.holders(of: path).processes.contains { $0.pid == CurrentProcess.pid })
        #expect(ProcessTable.holders(of: "/dev/no-such-node").processes.isEmpty)
        #expect(ProcessTable.holders(of: "/proc/self/exe").processes.isEmpty)
    }
}

@Suite struct FileWatches {
    @Test func `each change of the file is told, before it is there and after it has gone, and none of its neighbours`()
        throws
    {
        let folder = try TemporaryDirectory()
        let path = "\(folder.path)/list"
        let watch = try FileWatch(path)
        #expect(!watch.hasChanged())
        for name in ["lis", "list2", "other"] { try File.replace("\(folder.path)/\(name)", with: [1], mode: 0o600) }
        #expect(!watch.hasChanged())
        try File.replace(path, with: [1], mode: 0o600)
        #expect(watch.hasChanged())
        #expect(!watch.hasChanged())
        // In its place, and after more than is told in one call.
        for _ in 0..<400 { for name in ["other", "list2"] { close(open("\(folder.path)/\(name)", O_WRONLY)) } }
        try File.replace(path, with: [2], mode: 0o600)
        #expect((0..<100).contains { _ in watch.hasChanged() })
        let file = open(path, O_WRONLY)
        #expect(write(file, "x", 1) == 1)
        close(file)
        #expect(watch.hasChanged())
        // Who may read it, or write it, too.
        chmod(path, 0o644)
        #expect(watch.hasChanged())
        File.remove(path)
        #expect(watch.hasChanged())
        while watch.hasChanged() {}
        #expect(rename("\(folder.path)/other", path) == 0)
        #expect(watch.hasChanged())
        #expect(rename(path, "\(folder.path)/other") == 0)
        #expect(watch.hasChanged())
        #expect(throws: SystemError.self) { try FileWatch("\(folder.path)/nothing/list") }
    }

    @Test func `each change of any file in some folders is told`() throws {
        let folders = [try TemporaryDirectory(), try TemporaryDirectory()]
        let watch = try FileWatch(folders: folders.map(\.path))
        #expect(!watch.hasChanged())
        for folder in folders {
            for name in ["one", "two"] {
                try File.replace("\(folder.path)/\(name)", with: [1], mode: 0o600)
                #expect(watch.hasChanged())
                #expect(!watch.hasChanged())
            }
            File.remove("\(folder.path)/one")
            #expect(watch.hasChanged())
        }
        #expect(throws: SystemError.self) { try FileWatch(folders: [folders[0].path, "\(folders[0].path)/nothing"]) }
    }
}
