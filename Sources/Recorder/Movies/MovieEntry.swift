import BusProtocol
import CaptureCore
import CaptureLibrary
import Glibc
import JSON
import LinuxIO
import Logging
import MovieFile

/// The movie's entry in the capture library, if it is to have one. In the library there is no movie without; one
/// elsewhere that can't be entered is recorded all the same.
struct MovieEntry {
    private let library: CaptureLibrary
    private var entry: LibraryEntry
    private let logger: Logger

    /// Opens the library, and makes the folder of the file.
    ///
    /// - Parameters:
    ///   - path: of the file, without links but those on the way to the library.
    ///   - date: when it begins: nanoseconds since 1970.
    /// - Returns: nil when it is not to be entered, or can't be and lies elsewhere.
    /// - Throws: why what lies in the library can't be entered.
    init?(
        _ request: MovieRequest, path: String, date: Int64, video: JSONValue?, audio: JSONValue?, logger: Logger
    ) throws(LibraryError) {
        guard let folder = request.library else { return nil }
        self.logger = logger
        entry = LibraryEntry(
            id: request.movie, path: path, devices: request.camera.map { [$0.entry] } ?? [],
            microphone: request.microphone?.entry,
            started: date,
            fileType: request.fileType.rawValue, video: video, audio: audio, session: request.session, rig: request.rig,
            take: request.take, part: request.part,
            owner: LibraryOwner(uid: request.owner.uid, pid: request.owner.shownPID, name: request.owner.name))
        do throws(LibraryError) {
            library = try CaptureLibrary(folder, isShared: request.isLibraryShared)
            try library.makeFolder(for: path)
        } catch {
            logger.error("the capture library doesn't take the movie", metadata: ["error": "\(error)"])
            if try CaptureLibrary(folder, isMade: false).contains(path) { throw error }
            return nil
        }
    }

    /// The file's.
    var path: String { entry.path }
    /// The mode of what is made for it; nil: as that of any file.
    var mode: UInt32? { library.mode(of: entry.path) }

    /// Enters the movie as being recorded. Its file has been made, and its side-car if it has one, and they have no
    /// names yet: only these are ever mended or removed for this entry, and none is there that has none.
    ///
    /// - Returns: false: it can't be entered, and lies elsewhere.
    /// - Throws: as ``init(_:path:date:video:audio:logger:)``.
    mutating func add(_ file: FileIdentity, sideCar: FrameLog?) throws(LibraryError) -> Bool {
        entry.file = file
        entry.isNamed = false
        do throws(LibraryError) {
            if let sideCar {
                do throws(SystemError) { entry.sideCarFile = try sideCar.identity() } catch { throw .file(error) }
                entry.sideCar = sideCar.path
            }
            try library.add(entry)
            return true
        } catch {
            logger.error("the capture library doesn't take the movie", metadata: ["error": "\(error)"])
            if library.contains(entry.path) { throw error }
            return false
        }
    }

    /// The file has its name.
    mutating func named() {
        entry.isNamed = true
        told { () throws(LibraryError) in try library.replace(entry) }
    }

    /// There is no side-car.
    mutating func lacksSideCar() {
        (entry.sideCar, entry.sideCarFile) = (nil, nil)
        told { () throws(LibraryError) in try library.replace(entry) }
    }

    /// The movie goes on with another camera.
    mutating func follows(_ camera: MovieRequest.Device) {
        guard !entry.devices.contains(camera.entry) else { return }
        entry.devices.append(camera.entry)
        told { () throws(LibraryError) in try library.replace(entry) }
    }

    /// The movie has ended.
    mutating func end(_ result: MovieResult) {
        entry.state = .finished
        entry.reason = result.reason.rawValue
        entry.problem = result.error?.message
        entry.duration = result.duration
        entry.size = result.size
        entry.frames = result.frames
        entry.dropped = result.dropped
        told { () throws(LibraryError) in try library.replace(entry) }
    }

    /// There is no movie.
    func remove() { told { () throws(LibraryError) in try library.remove(entry.id) } }

    private func told(_ body: () throws(LibraryError) -> Void) {
        do throws(LibraryError) {
            try body()
        } catch {
            logger.error("the movie's entry can't be changed", metadata: ["error": "\(error)"])
        }
    }
}

extension MovieRequest.Device {
    fileprivate var entry: LibraryDevice { LibraryDevice(device: id, uniqueID: uniqueID, name: name) }
}

extension LibraryError {
    /// As a movie's file that can't be written: what is wrong is not the path that was asked for.
    var movieError: MovieError {
        if case .file(let error) = self, error.code == ENOSPC || error.code == EDQUOT { return .file(error) }
        return .file(SystemError(code: EIO, operation: "enter", subject: description))
    }
}
