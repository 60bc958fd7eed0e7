import ArgumentParser
import BusClient
import BusProtocol
import JSON

extension LibraryCommand {
    struct Fetch: BusCommand {
        static let configuration = CommandConfiguration(
            commandName: "fetch", abstract: "Brings the files of entries here, also from another machine.",
            discussion: """
                Of a live photo both files come; with --all also the side-car of a movie and the cover of a take. They have the names that they have \
                in the library, in the folder where one is, or those of -o. Their names are printed.

                A file gets its name when it is whole. What is cut off stays beside it (NAME.….part), and the same command goes on from there; a bus that is started \
                again meanwhile is waited for, as long as --timeout says. The library keeps its own until 'camerabus library delete' removes it.

                Exit status 1: it is not there, is not yours, is still being recorded, or can't be written here; 3: the bus has gone; 4: it has not answered in time. With \
                --json: a line {"id", "file", "path"} for each file.
                """)

        @OptionGroup var options: GlobalOptions

        @Option(
            name: .shortAndLong,
            help: ArgumentHelp("A file, a folder for their own names, or '-' for standard output.", valueName: "file"),
            completion: .file())
        var output: String?

        @Flag(help: "Also the side-car of a movie, and the cover of a take.")
        var all = false

        @Flag(help: "Replace files that are there already, once the new ones are whole.")
        var force = false

        @Argument(help: idHelp, completion: completion)
        var id: [String]

        func validate() throws {
            if output == "" { throw ValidationError("-o takes the name of a file or a folder.") }
            if id.count > 1, let output, !isFolder(output) {
                throw ValidationError("Several entries go into a folder: end -o with '/'.")
            }
            if output == "-", all || options.json {
                throw ValidationError("'-o -' takes one file, and nothing beside it.")
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
                throw ClientError.unreadable("The bus answered with an entry that names no file.")
            }
            if output == "-" { return try await download.bring(id, from: nil, to: "-") }
            let target = output.map { isFolder($0) ? ($0.hasSuffix("/") ? $0 + main : "\($0)/\(main)") : $0 } ?? main
            var files = [(member: "path", path: target)]
            if entry["movie"]?.string != nil { files.append(("movie", PhotoFileNames.movie(beside: target))) }
            if all, entry["sideCar"]?.string != nil { files.append(("sideCar", MovieFileNames.sideCar(of: target))) }
            if all, entry["cover"]?.string != nil { files.append(("cover", TakeJoin.cover(of: target))) }
            let there = files.map(\.path).first { MovieFileNames.exists($0) && !AtomicFile.isSpecial($0) }
            if !force, let path = there {
                throw Failure(
                    status: ExitStatus.refused,
                    description: Table.printable("\(path) is there already; --force replaces it."))
            }
            for file in files {
                // A side-car may not have come to be.
                do {
                    try await download.bring(id, file.member, from: nil, to: file.path)
                } catch ClientError.refused(let refusal)
                    where refusal.reason == .entryNotFound && file.member == "sideCar"
                {
                    Output.note(Table.printable(refusal.message))
                    continue
                } catch let error as ClientError where Self.isCut(error) && !AtomicFile.isSpecial(file.path) {
                    Output.note("What came until then stays, and the same command goes on from there.")
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

        // Without its folder, whatever the bus says.
        static func name(_ path: JSONValue?) -> String? {
            // By bytes: with a combining mark behind it "/" is another Character.
            guard let name = path?.string?.utf8.split(separator: UInt8(ascii: "/")).last.map({ String(Substring($0)) }),
                name != ".", name != ".."
            else { return nil }
            return name
        }
    }
}
