import Glibc
import LinuxIO

/// Files that are in the way of new ones, as they are called until those are whole: the bus overwrites nothing.
struct BackupFiles {
    /// A file with what lies beside it and belongs to it: a side-car, a cover.
    private struct Group {
        var path: String
        var names: [(path: String, name: String)]
    }

    private var groups: [Group] = []

    /// Gives a file another name, and those that belong to it; what isn't there is left out.
    ///
    /// - Throws: ``Failure`` when that can't be; what has another name already is kept for ``settle(replaced:)``.
    mutating func move(_ path: String, with companions: [String]) throws {
        guard MovieFileNames.exists(path) else { return }
        groups.append(Group(path: path, names: []))
        for path in [path] + companions where MovieFileNames.exists(path) {
            let name = "\(path).\(CurrentProcess.pid).old"
            guard !MovieFileNames.exists(name) else {
                throw Failure(status: ExitStatus.refused, description: Table.printable("\(name) is there already."))
            }
            guard rename(path, name) == 0 else {
                let why = String(cString: strerror(errno))
                throw Failure(status: ExitStatus.refused, description: Table.printable("\(path): \(why)"))
            }
            groups[groups.count - 1].names.append((path, name))
        }
    }

    /// Tells what the files are called.
    func note() {
        for name in groups.compactMap(\.names.first) {
            Output.note(Table.printable("\(name.path) is called \(name.name) until the new one is whole."))
        }
    }

    /// Tells what the files are called that stay as they are.
    func noteKept() {
        for (path, name) in groups.flatMap(\.names) {
            Output.note(Table.printable("What \(path) was before is \(name)."))
        }
    }

    /// Removes those that have new ones in their place, and gives the others their names again where these are free.
    mutating func settle(replaced: Set<String>) {
        for group in groups {
            for (path, name) in group.names {
                if replaced.contains(group.path) {
                    File.remove(name)
                } else if MovieFileNames.exists(path) || rename(name, path) != 0 {
                    Output.note(Table.printable("What \(path) was before is \(name)."))
                }
            }
        }
        groups = []
    }
}
