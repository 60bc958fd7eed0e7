import BusProtocol
import CameraBusTesting
import CaptureLibrary
import Glibc
import Librarian

/// An empty library, and the librarian who answers of it.
struct LibraryPlace {
    let scratch: TemporaryDirectory
    let library: CaptureLibrary
    let runtime: RuntimeDirectory
    let librarian: Librarian

    init() throws {
        scratch = try TemporaryDirectory()
        library = try CaptureLibrary("\(scratch.path)/library")
        runtime = try RuntimeDirectory("\(scratch.path)/bus")
        mkdir(runtime.path, 0o700)
        mkdir(runtime.internalDirectory, 0o700)
        librarian = try Librarian(library.directory, runtimeDirectory: runtime)
    }
}
