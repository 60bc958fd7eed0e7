import ArgumentParser
import BusProtocol
import CaptureCore
import Glibc
import JSON
import Librarian
import LinuxIO
import ServiceCommand

@main
struct CameraBusLibrarian: StartedCommand {
    static let configuration = CommandConfiguration(
        commandName: "camerabus-librarian",
        abstract:
            "Answers one question about the capture library. camerabusd starts it; by hand, 'camerabus library' is "
            + "what you want.",
        discussion: """
            REQUEST is one of
              {"do": "list", "since": NANOSECONDS, "kind": …, "device": …, "state": …, "take": …, "photo": …,
               "prefix": …, "limit": COUNT, "uid": UID}
              {"do": "get", "id": ID, "uid": UID}
              {"do": "read", "id": ID, "file": "path", "offset": BYTES, "length": BYTES, "uid": UID}
              {"do": "delete", "id": ID, "uid": UID}
              {"do": "recover", "id": ID}
              {"do": "left"}
              {"do": "giveUp", "id": ID}
              {"do": "applyAccess"}
              {"do": "usage"}
              {"do": "join", "take": ID, "segments": [ID…], "path": …, "cover": …, "preset": "1280x720",
               "root": …, "uid": UID}
            Required are "do", "id" of get and delete, all but the last of read, and the first four of join. With "uid"
            only entries of that user are seen.
            The answer is {"result": …} or {"error": {code, message, data}}, as over the bus.

            recover repairs recordings whose recorder has ended; it needs the runtime directory of the bus that records
            here.
            join makes one movie of a take's segments; before its answer it writes lines of {"progress": 0…1}.
            read writes the part of the file to standard input, which has to be open for that ('0<> FILE').
            left lists the entries to recover; giveUp marks an entry as damaged on which recover has crashed.
            usage tells how many bytes the entries of each user have.
            applyAccess gives all that is in the library the modes of new files: 0600, or 0640 with --shared.

            Exit status: 0 it answered, also with an error, 1 it could not, 64 usage.
            """)

    @Option(help: ArgumentHelp("The folder of the library.", valueName: "directory"))
    var library: String

    @Flag(help: "The group of the bus may read what is made in the library.")
    var shared = false

    @Option(help: ArgumentHelp("Where the bus has its sockets.", valueName: "directory"))
    var runtimeDir: String

    @Option(help: ArgumentHelp("What to do, in JSON.", valueName: "request"))
    var request: String

    func validate() throws {
        guard library.hasPrefix("/") else { throw ValidationError("the library's folder must be absolute") }
    }

    func run() throws {
        guard let json = try? JSONValue(parsing: request), let request = LibrarianRequest(json: json) else {
            throw ValidationError("--request is not a valid request")
        }
        let runtimeDirectory: RuntimeDirectory
        do throws(RuntimeDirectory.PathError) {
            runtimeDirectory = try RuntimeDirectory(runtimeDir)
        } catch {
            throw ValidationError(error.description)
        }
        CurrentProcess.raiseDescriptorLimit()
        let answer: Result<JSONValue, BusError>
        do throws(BusError) {
            answer = .success(
                try Librarian(library, isShared: shared, runtimeDirectory: runtimeDirectory).answer(request) {
                    Self.write(.progress($0))
                })
        } catch {
            answer = .failure(error)
        }
        guard Self.write(.answer(answer)) else { throw ExitCode.failure }
    }

    // At once. False: nobody reads it.
    private static func write(_ report: LibrarianReport) -> Bool {
        (try? FileDescriptor.writeAll(Array("\(report.json)\n".utf8), to: STDOUT_FILENO)) != nil
    }
}
