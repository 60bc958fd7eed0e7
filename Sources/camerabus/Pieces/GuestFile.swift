import ArgumentParser
import BusProtocol
import Glibc
import LinuxIO

/// A file of whom a gateway lets in, as an argument of the commands that list and change it.
protocol GuestFile: ParsableArguments {
    static var credential: GuestCredential { get }
    /// The environment's name for it, and where it is unless that or `file` says it.
    static var place: (variable: String, path: String) { get }

    var file: String? { get }
}

extension GuestFile {
    /// Whose the service's gateway is: who reads what others may not.
    private static var group: UInt32? { CurrentProcess.groupID(named: "camerabus-gateway") }
    private static var maximumProblems: Int { 8 }

    var path: String {
        if let file { return file }
        let named = CurrentProcess.environment(Self.place.variable) ?? ""
        return named.isEmpty ? Self.place.path : named
    }

    /// What it says; of one that isn't there yet, nothing. It is read as the gateway reads it: of keys all of it has to be right, and of tokens
    /// a line that is wrong is told, and lets nobody in.
    func read() throws -> GuestList {
        do {
            let text = String(decoding: try File.readAtOnce(path, limit: 1 << 20), as: UTF8.self)
            guard Self.credential == .token else { return try GuestList(parsing: text, by: Self.credential) }
            let list = GuestList(reading: text, by: Self.credential)
            for problem in list.problems.prefix(Self.maximumProblems) {
                Output.note(Table.printable("\(path): this lets nobody in: \(problem)"))
            }
            return list
        } catch let error as SystemError {
            if error.isAbsent { return GuestList(by: Self.credential) }
            throw Failure(status: ExitStatus.refused, description: "\(error)")
        } catch {
            throw Failure(status: ExitStatus.refused, description: Table.printable("\(path): \(error)"))
        }
    }

    /// Changes it, one process at a time: else who adds somebody could bring back another who has just been revoked.
    ///
    /// - Returns: whether it is a new file.
    @discardableResult
    func change(_ body: (inout GuestList) throws -> Void) throws -> Bool {
        do {
            // One of its own, that only those can hold who may change the file, which itself is replaced.
            return try withExtendedLifetime(try LockFile(waitingFor: "\(path).lock")) {
                let isNew = try check()
                var list = try read()
                try body(&list)
                try write(list)
                return isNew
            }
        } catch let error as SystemError {
            throw Failure(status: ExitStatus.refused, description: "\(error)")
        }
    }

    private func write(_ list: GuestList) throws(SystemError) {
        let bytes = Array(list.text.utf8)
        guard Self.credential == .token else { return try File.rewrite(path, with: bytes, mode: 0o644) }
        let group = geteuid() == 0 ? Self.group : nil
        try File.rewrite(path, with: bytes, mode: group == nil ? 0o600 : 0o640, group: group)
    }

    /// Refuses a file that a gateway doesn't take, before a secret is written into it.
    ///
    /// - Returns: whether there is none yet.
    private func check() throws -> Bool {
        func failure(_ why: String) -> Failure {
            Failure(status: ExitStatus.refused, description: Table.printable("\(path) \(why)"))
        }
        var status = stat()
        guard lstat(path, &status) == 0 else { return true }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw failure("is no plain file, or a link: name the file itself.")
        }
        guard Self.credential == .token else { return false }
        guard status.st_mode & 0o027 == 0 else {
            throw failure("can be read or written by others, and a gateway takes no such tokens: chmod 640 it.")
        }
        if geteuid() == 0, file == nil, let group = Self.group, status.st_gid != group {
            Output.note(Table.printable("\(path) is not the service's to read: chgrp camerabus-gateway, chmod 640."))
        }
        return false
    }

    /// - Throws: for a name that can't be one, which is usage.
    static func validate(name: String) throws {
        do throws(GuestList.Problem) { try GuestList.check(name: name) } catch {
            throw ValidationError(error.description)
        }
    }

    static func unknown(_ name: String, in list: GuestList) -> Failure {
        let names = list.entries.map(\.name).joined(separator: ", ")
        let there = names.isEmpty ? "There are none." : "There are: \(names)."
        return Failure(
            status: ExitStatus.refused,
            description: Table.printable("No \(credential.rawValue) is called '\(name)'. \(there)"))
    }
}
