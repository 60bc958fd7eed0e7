import BusProtocol
import CaptureCore
import CaptureLibrary
import Glibc
import JSON
import LinuxIO

/// Stores the photos of one request in the capture library. Used on the photos' thread.
struct PhotoStorage {
    /// The movie of a live photo, which is stored with its picture.
    struct Movie {
        var facts: LivePhotoMovie
        var file: LivePhotoFile

        /// - Parameter path: of the file, which is whole.
        init(_ facts: LivePhotoMovie, _ path: String) throws(BusError) {
            self.facts = facts
            do throws(LibraryError) { file = try LivePhotoFile(path, size: facts.bytes) } catch {
                throw BusError(.internalError, "The live photo's movie can't be read: \(error)")
            }
        }
    }

    let order: PhotoOrder
    let place: PhotoPlace

    private static let maximumAttempts = 99

    /// Stores a photo; a live one with its movie, both or neither.
    ///
    /// - Parameters:
    ///   - first: the number of the first name to try: the second file of a frame has the name of the first.
    ///   - isWanted: asked before it is entered as whole.
    /// - Returns: its entry, and the number of its name.
    /// - Throws: `diskFull`; `cancelled` where it isn't wanted any more.
    func store(
        _ bytes: [UInt8], as result: PhotoResult, with movie: Movie? = nil, from first: Int = 1,
        isWanted: () -> Bool = { true }
    ) throws(BusError) -> (entry: LibraryEntry, attempt: Int) {
        let count = bytes.count + (movie?.file.size ?? 0)
        let library: CaptureLibrary
        do throws(LibraryError) { library = try CaptureLibrary(place.library, isShared: place.isShared) } catch {
            throw failure(error, count)
        }
        let needed = Int64(count).addingReportingOverflow(place.minFree)
        if place.minFree > 0, let free = library.free, needed.overflow || free < needed.partialValue {
            throw full(count, free)
        }
        var attempt = first
        // Both files of a frame are to have one name.
        while isFirstOfPair(result), attempt < Self.maximumAttempts, isThere(path(result, .dng, attempt: attempt)) {
            attempt += 1
        }
        while true {
            do throws(LibraryError) {
                let entry = entry(result, movie?.facts, attempt: attempt)
                return (try library.store(entry, bytes, movie: movie?.file, isWanted: isWanted), attempt)
            } catch {
                // One of an earlier epoch has the name.
                guard case .file(let cause) = error, cause.code == EEXIST, attempt < Self.maximumAttempts else {
                    throw failure(error, count)
                }
                attempt += 1
            }
        }
    }

    private func entry(_ result: PhotoResult, _ movie: LivePhotoMovie?, attempt: Int) -> LibraryEntry {
        var details = result.json.object ?? [:]
        for name in ["device", "index", "fileType", "width", "height", "bytes", "path", "id", "attachment"] {
            details[name] = nil
        }
        details["livePhotoMovie"] = movie.map { movie in
            var movie = movie
            (movie.path, movie.attachment) = (nil, nil)
            return movie.json
        }
        let file = result.index * order.settings.filesPerShot + (isSecondOfPair(result) ? 1 : 0)
        var entry = LibraryEntry(
            id: place.ids[file], kind: .photo, path: path(result, result.fileType, attempt: attempt),
            devices: [
                LibraryDevice(
                    device: place.device.id, uniqueID: place.device.uniqueID, name: place.device.name)
            ],
            started: result.timestamp.realtime, fileType: result.fileType.rawValue,
            photo: LibraryPhoto(
                uniqueID: order.job, index: result.index, width: result.dimensions.width,
                height: result.dimensions.height, details: details),
            session: place.session, rig: place.rig,
            owner: LibraryOwner(uid: place.owner.uid, pid: place.owner.shownPID, name: place.owner.name))
        if movie != nil {
            entry.movie = "\(place.directory)/\(PhotoName.movie(stem: place.stem, attempt: attempt))"
        }
        return entry
    }

    private func isThere(_ path: String) -> Bool { File.owner(of: path) != nil }

    private func isFirstOfPair(_ result: PhotoResult) -> Bool {
        order.settings.withRaw && result.fileType != .dng
    }

    private func isSecondOfPair(_ result: PhotoResult) -> Bool {
        order.settings.withRaw && result.fileType == .dng
    }

    private func path(_ result: PhotoResult, _ fileType: PhotoFileType, attempt: Int) -> String {
        let name = PhotoName.file(
            stem: place.stem, index: result.index, count: order.settings.shotsPerDevice, fileType: fileType,
            attempt: attempt)
        return "\(place.directory)/\(name)"
    }

    // MARK: Failures

    private func failure(_ error: LibraryError, _ count: Int) -> BusError {
        guard case .file(let cause) = error else { return refusal(error) }
        switch cause.code {
        case ENOSPC, EDQUOT: return full(count, (try? CaptureLibrary(place.library, isMade: false))?.free ?? 0)
        case ECANCELED: return BusError(.cancelled, "The photo was cancelled.")
        default: return refusal(error)
        }
    }

    private func refusal(_ error: LibraryError) -> BusError {
        BusError(.internalError, "The capture library can't store the photo: \(error)")
    }

    private func full(_ count: Int, _ free: Int64) -> BusError {
        let reserved = free > count && place.minFree > 0 ? UInt64(place.minFree) : nil
        let lack = BusError.lack(free: UInt64(max(0, free)), reserved: reserved)
        return BusError(
            .diskFull, "The disk of \(place.library) \(lack): free some space, then take the photo again.",
            [
                "free": .integer(free),
                "needed": JSONValue(Int64(count).addingReportingOverflow(place.minFree).partialValue),
            ])
    }
}
