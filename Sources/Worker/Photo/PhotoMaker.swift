import BusProtocol
import CaptureCore
import CaptureLibrary
import CaptureSources
import Glibc
import JSON
import LinuxIO
import PhotoFile
import Synchronization
import ZeroMQ

/// A photo that is finished.
struct MadePhoto {
    var result: PhotoResult
    /// Its file, for who ordered it so.
    var attachment: Message?
}

/// Makes the photos of one request on the photos' thread: encodes frames and stores their files.
final class PhotoMaker: @unchecked Sendable {
    // But for `isOver` used by one thread at a time: made ready on one, and once the loop knows that, used on the other.

    /// What a photo's files are going to be.
    struct Plan: Sendable {
        var fileType: PhotoFileType
        var dimensions: Dimensions
        var thumbnail: Dimensions?
    }

    private let order: PhotoOrder
    private let device: String
    private let memory: PayloadMemory
    private var encoder: PhotoEncoder?
    private var fileType = PhotoFileType.jpeg
    private let isOver = Atomic(false)

    private static let maximumAttempts = 99

    init(_ order: PhotoOrder, device: String, _ memory: PayloadMemory) {
        self.order = order
        self.device = device
        self.memory = memory
    }

    /// Nothing more is to be stored.
    func giveUp() { isOver.store(true, ordering: .relaxed) }

    /// Makes ready for frames of a layout.
    func prepare(_ layout: FrameLayout) -> Result<Plan, BusError> {
        Result { () throws(BusError) in
            let settings = order.settings
            let available = PhotoEncoder.available(for: layout.pixelFormat)
            let fileType = settings.format ?? available.codecs.first ?? (available.raw.isEmpty ? .jpeg : .dng)
            let encoder = try PhotoEncoder(
                layout,
                PhotoMaking(
                    fileType: fileType, quality: settings.quality, orientation: settings.orientation ?? .landscapeRight,
                    isMirrored: settings.isMirrored ?? false, isTurned: settings.isTurned,
                    thumbnail: settings.thumbnail))
            self.encoder = encoder
            self.fileType = fileType
            return Plan(fileType: fileType, dimensions: encoder.dimensions, thumbnail: encoder.thumbnail)
        }
    }

    /// Makes a photo of a frame, and stores it where it is to be stored.
    func make(
        _ frame: KeptFrame, index: Int, _ reader: PhotoFactsReader, isSettled: Bool, late: Int64? = nil
    ) -> Result<MadePhoto, BusError> {
        Result { () throws(BusError) in
            guard let encoder, !isOver.load(ordering: .relaxed) else {
                throw BusError(.cancelled, "The photo was given up.")
            }
            let photo: EncodedPhoto
            do throws(PhotoFileError) {
                photo = try frame.bytes.withUnsafeBytes { (bytes) throws(PhotoFileError) in
                    try encoder.encode(
                        PhotoPicture(frame.layout, bytes, zoom: frame.facts.zoom), reader.facts(frame.facts))
                }
            } catch {
                throw BusError(
                    .internalError, "\(device)'s frame can't be made into a photo: \(error)",
                    ["device": .string(device)])
            }
            var result = PhotoResult(
                device: device, index: index, fileType: fileType, dimensions: photo.dimensions,
                bytes: photo.bytes.count,
                timestamp: PhotoResult.Timestamp(
                    monotonic: frame.facts.monotonic, realtime: frame.facts.realtime,
                    source: frame.timestampSource.rawValue),
                sequence: frame.facts.captureSequence, stream: frame.stream, exposure: reader.exposure,
                flashFired: reader.flashFired, isSettled: isSettled, late: late, thumbnail: photo.thumbnail)
            var attachment: Message?
            if order.attaches { attachment = try attach(photo.bytes) }
            if let place = order.place {
                do throws(BusError) { try store(photo.bytes, in: place, &result) } catch {
                    // The reply has it still.
                    guard order.attaches else { throw error }
                    result.error = error
                }
            }
            return MadePhoto(result: result, attachment: attachment)
        }
    }

    private func attach(_ bytes: [UInt8]) throws(BusError) -> Message {
        let message = Message()
        guard memory.fill(message, count: bytes.count, { $0.copyBytes(from: bytes) }) else {
            throw .noMemoryForPhotos(device)
        }
        return message
    }

    // MARK: In the library

    private func store(_ bytes: [UInt8], in place: PhotoPlace, _ result: inout PhotoResult) throws(BusError) {
        let library: CaptureLibrary
        do throws(LibraryError) { library = try CaptureLibrary(place.library) } catch {
            throw failure(error, place, bytes.count)
        }
        let needed = Int64(bytes.count).addingReportingOverflow(place.minFree)
        if place.minFree > 0, let free = library.free, needed.overflow || free < needed.partialValue {
            throw full(place, bytes.count, free)
        }
        for attempt in 1...Self.maximumAttempts {
            let name = PhotoName.file(
                stem: place.stem, index: result.index, count: order.settings.photosPerDevice, fileType: fileType,
                attempt: attempt)
            do throws(LibraryError) {
                let stored = try library.store(entry(result, place, path: "\(place.directory)/\(name)"), bytes)
                result.path = stored.path
                result.id = stored.id
                return
            } catch {
                // One of an earlier epoch has the name.
                if case .file(let cause) = error, cause.code == EEXIST, attempt < Self.maximumAttempts { continue }
                throw failure(error, place, bytes.count)
            }
        }
    }

    private func entry(_ result: PhotoResult, _ place: PhotoPlace, path: String) -> LibraryEntry {
        var details = result.json.object ?? [:]
        for name in ["device", "index", "fileType", "width", "height", "bytes", "path", "id", "attachment"] {
            details[name] = nil
        }
        return LibraryEntry(
            id: place.ids[result.index], kind: .photo, path: path,
            devices: [
                LibraryDevice(
                    device: place.device.id, uniqueID: place.device.uniqueID, name: place.device.name)
            ],
            started: result.timestamp.realtime, fileType: fileType.rawValue,
            photo: LibraryPhoto(
                uniqueID: order.job, index: result.index, width: result.dimensions.width,
                height: result.dimensions.height, details: details),
            session: place.session, rig: place.rig,
            owner: LibraryOwner(uid: place.owner.uid, pid: place.owner.pid, name: place.owner.name))
    }

    private func failure(_ error: LibraryError, _ place: PhotoPlace, _ count: Int) -> BusError {
        if case .file(let cause) = error, cause.code == ENOSPC || cause.code == EDQUOT {
            return full(place, count, (try? CaptureLibrary(place.library, isMade: false))?.free ?? 0)
        }
        return BusError(.internalError, "The capture library doesn't take the photo: \(error)")
    }

    private func full(_ place: PhotoPlace, _ count: Int, _ free: Int64) -> BusError {
        let reserved = free > count && place.minFree > 0 ? UInt64(place.minFree) : nil
        let lack = BusError.lack(free: UInt64(max(0, free)), reserved: reserved)
        return BusError(
            .diskFull, "The disk of \(place.library) \(lack): make room, then take the photo again.",
            [
                "free": .integer(free),
                "needed": JSONValue(Int64(count).addingReportingOverflow(place.minFree).partialValue),
            ])
    }
}

extension BusError {
    /// Photos under way have all the memory that they may have.
    static func noMemoryForPhotos(_ device: String) -> BusError {
        BusError(
            .limitExceeded,
            "There is no memory for a further photo of \(device); take it when the others are finished.",
            ["device": .string(device), "limit": "photoMemory"])
    }
}
