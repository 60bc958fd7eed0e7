import BusProtocol
import CaptureCore
import CaptureLibrary
import CaptureSources
import Delivery
import JSON
import PhotoFile
import Synchronization
import ZeroMQ

/// A photo that is finished.
struct MadePhoto {
    var result: PhotoResult
    /// Its file, for who ordered it so; nil: it is larger than any reply.
    var attachment: Message?
    /// The same, of a picture that is stored when its movie is whole.
    var held: Message?
}

/// Makes the photos of one request on the photos' thread: encodes frames, and has their files stored.
final class PhotoMaker: @unchecked Sendable {
    // But for the two flags used by one thread at a time: made ready on one, and once the loop knows that, used on the
    // other.

    /// What a photo's files are going to be.
    struct Plan: Sendable {
        var fileType: PhotoFileType
        var dimensions: Dimensions
        /// The size of the DNG of each frame; nil: there is no DNG.
        var raw: Dimensions?
        var thumbnail: Dimensions?
    }

    private let order: PhotoOrder
    private let device: String
    private let memory: PayloadMemory
    /// Of each frame, in the order in which they are made.
    private var encoders: [(fileType: PhotoFileType, encoder: PhotoEncoder)] = []
    /// Under which the last file was stored, of a pair.
    private var attempt = 1
    private let isOver = Atomic(false)
    private let mayStore = Atomic(true)

    init(_ order: PhotoOrder, device: String, _ memory: PayloadMemory) {
        self.order = order
        self.device = device
        self.memory = memory
    }

    /// Nothing more is to be stored.
    func giveUp() { isOver.store(true, ordering: .relaxed) }

    /// What is made from now on is not stored.
    func keepFromLibrary() { mayStore.store(false, ordering: .relaxed) }

    /// Makes ready for frames of a layout.
    func prepare(_ layout: FrameLayout) -> Result<Plan, BusError> {
        Result { () throws(BusError) in
            let settings = order.settings
            let available = PhotoEncoder.available(for: layout.pixelFormat)
            let isRawAlone = !settings.withRaw && !available.raw.isEmpty
            let fileType = settings.format ?? available.codecs.first ?? (isRawAlone ? .dng : .jpeg)
            let encoder = try encoder(of: layout, fileType)
            let raw = settings.withRaw ? try self.encoder(of: layout, .dng) : nil
            encoders = [(fileType, encoder)] + (raw.map { [(.dng, $0)] } ?? [])
            return Plan(
                fileType: fileType, dimensions: encoder.dimensions, raw: raw?.dimensions, thumbnail: encoder.thumbnail)
        }
    }

    private func encoder(of layout: FrameLayout, _ fileType: PhotoFileType) throws(BusError) -> PhotoEncoder {
        let settings = order.settings
        return try PhotoEncoder(
            layout,
            PhotoMaking(
                fileType: fileType, quality: settings.quality, orientation: settings.orientation ?? .landscapeRight,
                isMirrored: settings.isMirrored ?? false, isTurned: settings.isTurned, thumbnail: settings.thumbnail))
    }

    /// Makes a photo of a frame, and stores it where it is to be stored and has no movie to wait for.
    ///
    /// - Parameter file: which of the frame's files, from 0; they are made one after the other.
    func make(
        _ frame: KeptFrame, index: Int, file: Int = 0, _ reader: PhotoFactsReader, isSettled: Bool, late: Int64? = nil
    ) -> Result<MadePhoto, BusError> {
        Result { () throws(BusError) in
            guard encoders.indices.contains(file), !isOver.load(ordering: .relaxed) else {
                throw BusError(.cancelled, "The photo was cancelled.")
            }
            let (fileType, encoder) = encoders[file]
            let photo: EncodedPhoto
            do throws(PhotoFileError) {
                photo = try frame.bytes.withUnsafeBytes { (bytes) throws(PhotoFileError) in
                    try encoder.encode(
                        PhotoPicture(frame.layout, bytes, zoom: frame.facts.zoom), facts(frame, reader))
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
            // What is larger would end the connection to the coordinator, with all that goes over it.
            let isGiven = order.attaches && photo.bytes.count <= BusLimits.maxPhotoReplyBytes
            let attachment = try isGiven ? message(photo.bytes) : nil
            guard !order.isHeldBack else {
                let held = if let attachment { try share(attachment) } else { try message(photo.bytes) }
                return MadePhoto(result: result, attachment: attachment, held: held)
            }
            if let place = order.place, mayStore.load(ordering: .relaxed) {
                do throws(BusError) {
                    let storage = PhotoStorage(order: order, place: place)
                    let stored = try storage.store(photo.bytes, as: result, from: file == 0 ? 1 : attempt)
                    (result.path, result.id) = (stored.entry.path, stored.entry.id)
                    attempt = stored.attempt
                } catch {
                    // The reply has it still.
                    guard order.attaches else { throw error }
                    result.error = error
                }
            }
            return MadePhoto(result: result, attachment: attachment)
        }
    }

    private func facts(_ frame: KeptFrame, _ reader: PhotoFactsReader) -> PhotoFacts {
        var facts = reader.facts(frame.facts)
        guard let identifier = order.identifier else { return facts }
        (facts.uniqueID, facts.livePhoto) = (identifier.digits, identifier)
        return facts
    }

    // Its bytes count once.
    private func share(_ message: Message) throws(BusError) -> Message {
        let other = Message()
        do throws(ZeroMQError) { try other.share(message) } catch { throw .noMemoryForPhotos(device) }
        return other
    }

    private func message(_ bytes: [UInt8]) throws(BusError) -> Message {
        let message = Message()
        guard memory.fill(message, count: bytes.count, { $0.copyBytes(from: bytes) }) else {
            throw .noMemoryForPhotos(device)
        }
        return message
    }
}

extension BusError {
    /// Photos under way have all the memory that they may have.
    static func noMemoryForPhotos(_ device: String) -> BusError {
        BusError(
            .limitExceeded,
            "There is no memory for another photo of \(device); take it when the others are finished.",
            ["device": .string(device), "limit": "photoMemory"])
    }
}
