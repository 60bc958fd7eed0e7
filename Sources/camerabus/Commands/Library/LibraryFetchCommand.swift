import ArgumentParser
import BusClient
import BusProtocol
import JSON

extension LibraryCommand {
    struct Fetch: BusCommand {
        static let configuration = CommandConfiguration(
            commandName: "fetch", abstract: "Downloads the files of entries, also from another machine.",
            discussion: """
                For a live photo both files are downloaded; with --all also the side-car of a movie and the cover of a \
                take. The files keep their names of the library and go to the current folder, unless -o says \
                otherwise. The names are printed.

                A file gets its name when it is complete. After an interruption the unfinished file stays next to it \
                (NAME.….part); repeat the command to continue. If the bus restarts meanwhile, the command waits for \
                it, up to --timeout. The library keeps its files until 'camerabus library delete' removes them.

                Exit status 1: the entry does not exist, belongs to another user, is still being recorded, or can't be \
                written here. 3: the bus has ended. 4: the bus did not answer in time. With --json: one line {"id", \
                "file", "path"} per file.
                """)

        @OptionGroup var options: GlobalOptions

        @Option(
            name: .shortAndLong,
            help: ArgumentHelp("A file, a folder (the names are kept), or '-' for standard output.", valueName: "file"),
            completion: .file())
        var output: String?

        @Flag(help: "Also download the side-car of a movie and the cover of a take.")
        var all = false

        @Flag(help: "Replace existing files when the new ones are complete.")
        var force = false

        @Argument(help: idHelp, completion: completion)
        var id: [String]

        func validate() throws {
            if output == "" { throw ValidationError("-o takes the name of a file or a folder.") }
            if id.count > 1, let output, !isFolder(output) {
                throw ValidationError("For several entries -o takes a folder: end it with '/'.")
            }
            if output == "-", all || options.json {
                throw ValidationError("'-o -' writes one file: leave --all and --json out.")
            }
        }

        private func isFolder(_ path: String) -> Bool { path.hasSuffix("/") || MovieFileNames.isFolder(path) }

        func run(_ client: Client) async throws {
            let download = Download(client, timeout: timeout, replaces: force)
            for id in id {
                let entry = try await client.libraryEntry(
                    try await ShortID.entry(id, client, timeout), timeout: timeout)
                try await fetch(entry, download)
            }
        }

        private func fetch(_ entry: JSONValue, _ download: Download) async throws {
            guard let id = entry["id"]?.string, let main = Self.name(entry["path"]) else {
                throw ClientError.unreadable("The answer of the bus is invalid: the entry has no file name.")
            }
            if output == "-" { return try await download.fetch(id, from: nil, to: "-") }
            let target = output.map { isFolder($0) ? ($0.hasSuffix("/") ? $0 + main : "\($0)/\(main)") : $0 } ?? main
            var files = [(member: "path", path: target)]
            if entry["movie"]?.string != nil { files.append(("movie", PhotoFileNames.movie(beside: target))) }
            if all, entry["sideCar"]?.string != nil { files.append(("sideCar", MovieFileNames.sideCar(of: target))) }
            if all, entry["cover"]?.string != nil { files.append(("cover", TakeJoin.cover(of: target))) }
            let there = files.map(\.path).first { MovieFileNames.exists($0) && !AtomicFile.isSpecial($0) }
            if !force, let path = there {
                throw Failure(
                    status: ExitStatus.refused,
                    description: Table.printable("\(path) exists already; --force replaces it."))
            }
            for file in files {
                // A side-car may be missing.
                do {
                    try await download.fetch(id, file.member, from: nil, to: file.path)
                } catch ClientError.refused(let refusal)
                    where refusal.reason == .entryNotFound && file.member == "sideCar"
                {
                    Output.note(Table.printable(refusal.message))
                    continue
                } catch let error as ClientError where Self.isCut(error) && !AtomicFile.isSpecial(file.path) {
                    Output.note("The download was interrupted. Repeat the command to continue.")
                    throw error
                }
                if options.json {
                    try Output.json(["id": .string(id), "file": .string(file.member), "path": .string(file.path)])
                } else {
                    try Output.line(Table.printable(file.path))
                }
            }
        }

        private static func isCut(_ error: ClientError) -> Bool {
            switch error {
            case .connectionLost, .timedOut, .noBus, .ended, .cancelled: true
            case .refused(let refusal): refusal.reason == .limitExceeded
            default: false
            }
        }

        // The file name alone, without any folder from the bus.
        static func name(_ path: JSONValue?) -> String? {
            // By bytes: with a combining mark behind it "/" is another Character.
            guard let name = path?.string?.utf8.split(separator: UInt8(ascii: "/")).last.map({ String(Substring($0)) }),
                name != ".", name != ".."
            else { return nil }
            return name
        }
    }
}
