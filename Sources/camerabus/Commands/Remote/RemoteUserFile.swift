import ArgumentParser
import BusProtocol
import Glibc
import LinuxIO

/// A file of whom a gateway lets in, as an argument of the commands that list and change it.
protocol RemoteUserFile: ParsableArguments {
    static var credential: RemoteCredential { get }
    /// The environment's name for it, and where it is unless that or `file` says it.
    static var place: (variable: String, path: String) { get }

    var file: String? { get }
}

extension RemoteUserFile {
    /// Of the service's gateway, which reads what others may not.
    private static var group: UInt32? { CurrentProcess.groupID(named: "camerabus-gateway") }
    private static var maximumProblems: Int { 8 }

    var path: String {
        if let file { return file }
        let named = CurrentProcess.environment(Self.place.variable) ?? ""
        return named.isEmpty ? Self.place.path : named
    }

    /// What it says, with a note of what keeps a gateway from taking it; of one that isn't there yet, nothing.
    func read() throws -> RemoteUserList {
        if let problem = problem() ?? doubt() { Output.note(problem) }
        return try readList()
    }

    // As the gateway reads it: of keys all of it has to be right, and of tokens a line that is wrong is told, and lets nobody in.
    private func readList() throws -> RemoteUserList {
        do {
            let text = String(decoding: try File.readAtOnce(path, limit: 1 << 20), as: UTF8.self)
            guard Self.credential == .token else { return try RemoteUserList(parsing: text, by: Self.credential) }
            let list = RemoteUserList(reading: text, by: Self.credential)
            for problem in list.problems.prefix(Self.maximumProblems) {
                Output.note(Table.printable("\(path): this lets nobody in: \(problem)"))
            }
            return list
        } catch let error as SystemError {
            if error.isAbsent { return RemoteUserList(by: Self.credential) }
            throw Failure(status: ExitStatus.refused, description: "\(error)")
        } catch {
            throw Failure(
                status: ExitStatus.refused,
                description: Table.printable(
                    "\(path): \(error). The gateway lets nobody in until that line is mended or gone."))
        }
    }

    /// Changes it, one process at a time: else who adds somebody could bring back another who has just been revoked.
    ///
    /// - Returns: whether it is a new file.
    @discardableResult
    func change(_ body: (inout RemoteUserList) throws -> Void) throws -> Bool {
        do {
            // One of its own, that only those can hold who may change the file, which itself is replaced.
            return try withExtendedLifetime(try lock()) {
                // Before a secret is written into it.
                if let problem = problem() { throw Failure(status: ExitStatus.refused, description: problem) }
                if let doubt = doubt() { Output.note(doubt) }
                let isNew = access(path, F_OK) != 0
                var list = try readList()
                try body(&list)
                try write(list)
                return isNew
            }
        } catch let error as SystemError {
            throw Failure(status: ExitStatus.refused, description: "\(error)")
        }
    }

    private func lock() throws -> LockFile {
        do throws(SystemError) {
            return try LockFile(waitingFor: "\(path).lock")
        } catch {
            let folder = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "./"
            let why: String? =
                switch error.code {
                case ENOENT:
                    "There is no folder \(folder): make it, or name another file (--file, $\(Self.place.variable))."
                case EACCES, EROFS:
                    "You may not write into \(folder): with sudo, or name a file of your own (--file, $\(Self.place.variable))."
                default: nil
                }
            guard let why else { throw error }
            throw Failure(status: ExitStatus.refused, description: Table.printable(why))
        }
    }

    private func write(_ list: RemoteUserList) throws(SystemError) {
        let bytes = Array(list.text.utf8)
        guard Self.credential == .token else { return try File.rewrite(path, with: bytes, mode: 0o644) }
        let group = geteuid() == 0 ? Self.group : nil
        try File.rewrite(path, with: bytes, mode: group == nil ? 0o600 : 0o640, group: group)
    }

    /// Why a gateway doesn't take the file; nil: it does, or there is none yet.
    private func problem() -> String? {
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        let isToken = Self.credential == .token
        guard status.st_mode & S_IFMT == S_IFREG else {
            return Table.printable("\(path) is no plain file, or a link: name the file itself.")
        }
        guard status.st_mode & (isToken ? 0o027 : 0o022) != 0 else { return nil }
        let what = isToken ? "read or written by others: chmod 640" : "written by others: chmod go-w"
        return Table.printable("A gateway takes no such file, and lets nobody in: \(path) can be \(what).")
    }

    /// Why the service's gateway can't read its file; nil: it can, or the file is another's. It is no more than a doubt, as the bus can be told of
    /// a gateway that runs as somebody else (`permission.gateway`).
    private func doubt() -> String? {
        var status = stat()
        guard path == Self.place.path, lstat(path, &status) == 0 else { return nil }
        let service = "camerabus-gateway"
        func told(_ why: String) -> String {
            "The service's gateway takes no such file, and lets nobody in: \(path) \(why)."
        }
        guard [0, UserDatabase.userID(named: service)].contains(status.st_uid) else {
            return told("belongs to somebody else: chown root")
        }
        guard status.st_uid == 0, let group = Self.group else { return nil }
        let isReadable = status.st_mode & 0o004 != 0 || (status.st_gid == group && status.st_mode & 0o040 != 0)
        return isReadable ? nil : told("can't be read by it: chgrp \(service), chmod 640")
    }

    /// - Throws: for a name that can't be one, which is usage.
    static func validate(name: String) throws {
        do throws(RemoteUserList.Problem) { try RemoteUserList.check(name: name) } catch {
            throw ValidationError(error.description)
        }
    }

    static func unknown(_ name: String, in list: RemoteUserList) -> Failure {
        guard !list.isWrong(name) else {
            return Failure(
                status: ExitStatus.refused,
                description: Table.printable("The line of '\(name)' is wrong: mend it, or 'revoke' takes it away."))
        }
        let names = list.entries.map(\.name).joined(separator: ", ")
        let there = names.isEmpty ? "There are none." : "There are: \(names)."
        return Failure(
            status: ExitStatus.refused,
            description: Table.printable("No \(credential.rawValue) is called '\(name)'. \(there)"))
    }
}
