import BusProtocol
import CaptureCore
import CaptureLibrary
import JSON
import LinuxIO
import Logging

/// The movie's entry in the capture library, if it is to have one. What can't be entered is recorded all the same.
struct MovieEntry {
    private let library: CaptureLibrary
    private var entry: LibraryEntry
    private let logger: Logger

    /// Enters the movie as being recorded, and makes the folder of its file.
    ///
    /// - Parameters:
    ///   - time: when it begins: monotonic nanoseconds.
    ///   - sideCar: the side-car's path; nil: it has none.
    /// - Returns: nil when it is not to be entered, or can't be.
    init?(
        _ request: MovieRequest, at time: Int64, sideCar: String?, video: JSONValue?, audio: JSONValue?, logger: Logger
    ) {
        guard let folder = request.library else { return nil }
        self.logger = logger
        entry = LibraryEntry(
            id: request.movie, path: request.path, sideCar: sideCar, devices: request.camera.map { [$0.entry] } ?? [],
            microphone: request.microphone?.entry,
            started: MonotonicClock.realtime() - (MonotonicClock.now() - time),
            fileType: request.fileType.rawValue, video: video, audio: audio, session: request.session, rig: request.rig,
            take: request.take, part: request.part,
            owner: LibraryOwner(uid: request.owner.uid, pid: request.owner.pid, name: request.owner.name))
        do throws(LibraryError) {
            library = try CaptureLibrary(folder)
            try library.makeFolder(for: request.path)
            try library.add(entry)
        } catch {
            logger.error("the capture library doesn't take the movie", metadata: ["error": "\(error)"])
            return nil
        }
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
