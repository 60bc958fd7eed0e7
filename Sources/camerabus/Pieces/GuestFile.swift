import ArgumentParser
import BusProtocol
import Glibc
import LinuxIO

/// A file of whom a gateway lets in, as an argument of the commands that list and change it.
protocol GuestFile: ParsableArguments {
    static var credential: GuestList.Credential { get }
    /// The environment's name for it, and where it is unless that or `file` says it.
    static var place: (variable: String, path: String) { get }
    /// Of one that isn't there yet.
    static var mode: UInt32 { get }
    /// The group of one that isn't there yet, where there is one and root makes it.
    static var group: String? { get }

    var file: String? { get }
}

extension GuestFile {
    static var group: String? { nil }

    var path: String {
        if let file { return file }
        let named = CurrentProcess.environment(Self.place.variable) ?? ""
        return named.isEmpty ? Self.place.path : named
    }

    /// What it says; of one that isn't there yet, nothing.
    func read() throws -> GuestList {
        do {
            let bytes = try File.readAtOnce(path, limit: 1 << 20)
            return try GuestList(parsing: String(decoding: bytes, as: UTF8.self), by: Self.credential)
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
                var list = try read()
                try body(&list)
                let isNew = access(path, F_OK) != 0
                let group = geteuid() == 0 ? Self.group.flatMap(CurrentProcess.groupID(named:)) : nil
                try File.rewrite(path, with: Array(list.text.utf8), mode: Self.mode, group: group)
                return isNew
            }
        } catch let error as SystemError {
            throw Failure(status: ExitStatus.refused, description: "\(error)")
        }
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

/// A role as an argument.
struct GuestRole: ExpressibleByArgument {
    var role: Request.Principal.Role

    init(_ role: Request.Principal.Role) { self.role = role }

    init?(argument: String) {
        guard let role = GuestList.roles.first(where: { $0.rawValue == argument }) else { return nil }
        self.role = role
    }

    static var allValueStrings: [String] { GuestList.roles.map(\.rawValue) }
    var defaultValueDescription: String { role.rawValue }
}
