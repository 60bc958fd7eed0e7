import Glibc
import LinuxIO

/// Existing files, renamed until new ones with their names are finished: the bus never overwrites files.
struct BackupFiles {
    /// A file with its side-car and cover.
    private struct Group {
        var path: String
        var names: [(path: String, name: String)]
    }

    private var groups: [Group] = []

    /// Renames a file and the files that belong to it. Skips missing ones.
    ///
    /// - Throws: ``Failure`` on an error; ``settle(replaced:)`` still knows the files renamed before it.
    mutating func move(_ path: String, with companions: [String]) throws {
        guard MovieFileNames.exists(path) else { return }
        groups.append(Group(path: path, names: []))
        for path in [path] + companions where MovieFileNames.exists(path) {
            let name = "\(path).\(CurrentProcess.pid).old"
            guard !MovieFileNames.exists(name) else {
                throw Failure(
                    status: ExitStatus.refused,
                    description: Table.printable("\(name) exists already. Rename or remove it."))
            }
            guard rename(path, name) == 0 else {
                let why = String(cString: strerror(errno))
                throw Failure(status: ExitStatus.refused, description: Table.printable("\(path): \(why)"))
            }
            groups[groups.count - 1].names.append((path, name))
        }
    }

    /// Prints the new names.
    func note() {
        for name in groups.compactMap(\.names.first) {
            Output.note(Table.printable("\(name.path) was renamed to \(name.name) until the new file is finished."))
        }
    }

    /// Prints the names of files that stay renamed.
    func noteKept() {
        for (path, name) in groups.flatMap(\.names) {
            Output.note(Table.printable("The previous file \(path) is now \(name)."))
        }
    }

    /// Removes files that were replaced, and gives the others their names back if these are free.
    mutating func settle(replaced: Set<String>) {
        for group in groups {
            for (path, name) in group.names {
                if replaced.contains(group.path) {
                    File.remove(name)
                } else if MovieFileNames.exists(path) || rename(name, path) != 0 {
                    Output.note(Table.printable("The previous file \(path) is now \(name)."))
                }
            }
        }
        groups = []
    }
}
