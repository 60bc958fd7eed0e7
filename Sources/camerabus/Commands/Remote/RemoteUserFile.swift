import ArgumentParser
import BusProtocol
import Glibc
import LinuxIO

/// A file with the remote users of a gateway, as an argument of the commands that list and change it.
protocol RemoteUserFile: ParsableArguments {
    static var credential: RemoteCredential { get }
    /// The environment variable for it, and its default path.
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

    /// Reads the file, and notes why a gateway would refuse it. A missing file is empty.
    func read() throws -> RemoteUserList {
        if let problem = problem() ?? doubt() { Output.note(problem) }
        return try readList()
    }

    // Like the gateway: a wrong line makes a keys file invalid; in a tokens file it is noted and ignored.
    private func readList() throws -> RemoteUserList {
        do {
            let text = String(decoding: try File.readAtOnce(path, limit: 1 << 20), as: UTF8.self)
            guard Self.credential == .token else { return try RemoteUserList(parsing: text, by: Self.credential) }
            let list = RemoteUserList(reading: text, by: Self.credential)
            for problem in list.problems.prefix(Self.maximumProblems) {
                Output.note(Table.printable("\(path): this line is ignored: \(problem)"))
            }
            return list
        } catch let error as SystemError {
            if error.isAbsent { return RemoteUserList(by: Self.credential) }
            throw Failure(status: ExitStatus.refused, description: "\(error)")
        } catch {
            throw Failure(
                status: ExitStatus.refused,
                description: Table.printable(
                    "\(path): \(error). The gateway accepts no keys until this line is corrected or removed."))
        }
    }

    /// Changes the file, one process at a time. Without this an addition could bring back a user that was just revoked.
    ///
    /// - Returns: whether it is a new file.
    @discardableResult
    func change(_ body: (inout RemoteUserList) throws -> Void) throws -> Bool {
        do {
            // A separate lock file, as the file itself is replaced. Only users that may change the file can hold it.
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
                    "There is no folder \(folder). Create it, or name another file (--file, $\(Self.place.variable))."
                case EACCES, EROFS:
                    "You may not write to \(folder). Use sudo, or name your own file (--file, $\(Self.place.variable))."
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

    /// Why a gateway refuses the file; nil: it does not, or the file does not exist yet.
    private func problem() -> String? {
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        let isToken = Self.credential == .token
        guard status.st_mode & S_IFMT == S_IFREG else {
            return Table.printable("\(path) is a link, or not a regular file. Name the file itself.")
        }
        guard status.st_mode & (isToken ? 0o027 : 0o022) != 0 else { return nil }
        let what =
            isToken ? "read or written by other users. Run: chmod 640" : "written by other users. Run: chmod go-w"
        return Table.printable("The gateway ignores this file and accepts no client: \(path) can be \(what) \(path)")
    }

    /// Why the service's gateway can't read its file; nil: it can, or the file belongs to another gateway. Only a
    /// doubt, as the bus may be configured for a gateway of another user (`permission.gateway`).
    private func doubt() -> String? {
        var status = stat()
        guard path == Self.place.path, lstat(path, &status) == 0 else { return nil }
        let service = "camerabus-gateway"
        func refusal(_ why: String) -> String {
            "The gateway of the service ignores this file and accepts no client: \(path) \(why)"
        }
        guard [0, UserDatabase.userID(named: service)].contains(status.st_uid) else {
            return refusal("belongs to another user. Run: chown root \(path)")
        }
        guard status.st_uid == 0, let group = Self.group else { return nil }
        let isReadable = status.st_mode & 0o004 != 0 || (status.st_gid == group && status.st_mode & 0o040 != 0)
        return isReadable ? nil : refusal("is not readable for it. Run: chgrp \(service) \(path); chmod 640 \(path)")
    }

    /// - Throws: for an invalid name; this is a usage error.
    static func validate(name: String) throws {
        do throws(RemoteUserList.Problem) { try RemoteUserList.check(name: name) } catch {
            throw ValidationError(error.description)
        }
    }

    static func unknown(_ name: String, in list: RemoteUserList) -> Failure {
        guard !list.isWrong(name) else {
            return Failure(
                status: ExitStatus.refused,
                description: Table.printable(
                    "The line of '\(name)' is invalid. Correct it, or remove it with 'revoke'."))
        }
        let names = list.entries.map(\.name).joined(separator: ", ")
        let there = names.isEmpty ? "There are none." : "Known: \(names)."
        return Failure(
            status: ExitStatus.refused,
            description: Table.printable("There is no \(credential.rawValue) '\(name)'. \(there)"))
    }
}
