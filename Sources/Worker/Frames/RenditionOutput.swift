import BusProtocol
import CaptureCore
import CaptureSources
import Delivery
import Imaging

/// One rendition that is wanted, with all topics that ask for it.
final class RenditionOutput {
    /// How its pictures come about in the present stream.
    enum Making {
        /// Nothing streams.
        case idle
        /// The device's own bytes.
        case passThrough
        case converted(RenditionWork)
        case impossible(BusError)
    }

    /// A topic with its own count of frames.
    final class Output {
        let subscribed: SubscribedTopic
        /// nil while nothing is made for it.
        var writer: FrameHeaderWriter?
        /// Frames that were published so far within the stream.
        var sequence: UInt64
        /// It has had a frame with which a reader can begin, and every one since then.
        var hasBegun = false

        /// Whether the frame is one for the topic: each begins with one that builds on none before it.
        func admits(_ facts: FrameFacts) -> Bool {
            hasBegun = hasBegun || facts.isKeyframe != false
            return hasBegun
        }

        init(_ subscribed: SubscribedTopic, sequence: UInt64) {
            self.subscribed = subscribed
            self.sequence = sequence
        }
    }

    let rendition: Rendition
    private(set) var making = Making.idle
    var outputs: [Output] = []
    /// Somebody wants rings of it.
    var wantsRing = false
    /// A movie is recorded of it.
    var isRecorded = false
    /// Its frames lie in a ring: for who reads that, and to be lent to libzmq.
    var needsRing: Bool { wantsRing || wantsPayload }
    /// Somebody wants the pixels with the header.
    var wantsPayload: Bool { outputs.contains { $0.subscribed.kind == .frame } }
    /// The ring of this stream, while one is needed.
    var ring: RenditionRing?
    /// Why there is no ring, if there should be one.
    var ringError: BusError?
    /// Frames that were left out within this stream: damaged ones, and those for which there was no time.
    var dropped: UInt64 = 0
    /// Frames that were published within this stream.
    var published: UInt64 = 0
    /// Why frames can't be converted, where none could for a while.
    private(set) var failure: String?
    /// When the first frame was taken that could not be converted, since the last that could. Nanoseconds.
    private var failingSince: Int64?
    /// How long no frame may be converted before that counts as failing, nanoseconds: a single one may have come
    /// damaged.
    private static let damageTime: Int64 = 1_000_000_000
    private var decimator: FrameDecimator?

    init(_ rendition: Rendition) { self.rendition = rendition }

    /// The work, where frames are converted.
    var work: RenditionWork? {
        if case .converted(let work) = making { work } else { nil }
    }

    /// A topic of it can't begin before the next key frame.
    var isWaiting: Bool {
        guard case .passThrough = making else { return false }
        return outputs.contains { !$0.hasBegun }
    }

    /// Gets ready for a stream.
    func begin(_ run: CameraStream) {
        dropped = 0
        published = 0
        wasConverted()
        decimator = rendition.rateMillionths.map { FrameDecimator(rateMillionths: $0) }
        if run.isChained, let rate = rendition.rateMillionths, let duration = run.frameDuration,
            Double(rate) >= 1_000_000 / duration.seconds
        {
            decimator = nil
        }
        do {
            making = try Self.making(rendition, run)
        } catch {
            making = .impossible(error)
        }
    }

    /// A frame could be converted.
    func wasConverted() { (failure, failingSince) = (nil, nil) }

    /// A frame that was taken at that time, in monotonic nanoseconds, could not be converted.
    func wasNotConverted(_ why: String, at time: Int64) {
        let since = failingSince ?? time
        failingSince = since
        if time - since >= Self.damageTime { failure = why }
    }

    /// The stream has ended.
    func end() {
        making = .idle
        for output in outputs { output.writer = nil }
    }

    /// Gets the topic's header ready; nothing for a rendition that is not made.
    func prepare(_ output: Output, device: String, _ run: CameraStream) {
        let layout: FrameLayout
        let planes: [FrameHeader.Plane]?
        let ring = output.subscribed.kind == .buffer ? self.ring?.id : nil
        guard output.subscribed.kind == .frame || ring != nil else { return }
        switch making {
        case .idle, .impossible: return
        case .passThrough:
            layout = run.layout
            planes = run.payloadPlan.planes
        case .converted(let work):
            layout = work.layout
            planes =
                layout.pixelFormat.isCompressed
                ? nil
                : layout.planes.map { FrameHeader.Plane(offset: $0.offset, stride: $0.stride, bytes: $0.bytes) }
        }
        output.writer = FrameHeaderWriter(
            FrameHeaderWriter.Picture(
                device: device, rendition: output.subscribed.text, stream: run.id,
                format: layout.pixelFormat.name, width: layout.dimensions.width, height: layout.dimensions.height,
                planes: planes, orientation: orientation(run).quarters * 90, mirrored: orientation(run).isMirrored,
                extensions: layout.description.extensions, timestampSource: run.timestampSource.rawValue, ring: ring))
    }

    /// Of the published pictures, for their headers. Pictures that are passed on have the device's orientation;
    /// converted ones are upright.
    func orientation(_ run: CameraStream) -> PictureOrientation {
        if case .passThrough = making { return run.layout.description.orientation }
        return PictureOrientation(quarters: 0, isMirrored: rendition.isVideoMirrored)
    }

    /// Whether the frame is wanted at the rate that was asked for. Where frames build on one another only key frames
    /// can be had at a rate below the device's.
    func wants(_ facts: FrameFacts) -> Bool {
        guard decimator != nil else { return true }
        return facts.isKeyframe != false && decimator?.admits(facts.monotonic) == true
    }

    /// Why a rendition cannot be made of a device's pictures; nil: it can.
    static func obstacle(to rendition: Rendition, from format: FormatDescription) -> BusError? {
        guard !isPassedThrough(rendition, format) else { return nil }
        if let error = PictureConverter.obstacle(to: format.pixelFormat) { return error }
        do throws(BusError) {
            _ = try resolve(rendition, for: FrameLayout(format, planes: []))
            return nil
        } catch {
            return error
        }
    }

    private static func isPassedThrough(_ rendition: Rendition, _ format: FormatDescription) -> Bool {
        if rendition.encoding == .native { return true }
        let isJPEG = format.pixelFormat == .motionJPEG || format.pixelFormat == .jpeg
        let isUpright = PictureOrientation(rendition) == .upright
        guard rendition.encoding == .jpeg, rendition.quality == nil, rendition.crop == nil, isUpright, isJPEG else {
            return false
        }
        return rendition.width == nil || rendition.isFitted && rendition.holds(format)
    }

    private static func making(_ rendition: Rendition, _ run: CameraStream) throws(BusError) -> Making {
        if isPassedThrough(rendition, run.layout.description) { return .passThrough }
        let request = try resolve(rendition, for: run.layout)
        let work = RenditionWork(try PictureConverter(from: run.layout, to: request))
        if let rate = rendition.rateMillionths { work.limitRate(rate) }
        return .converted(work)
    }
}

extension Rendition {
    /// The device's picture lies within its bounds.
    fileprivate func holds(_ format: FormatDescription) -> Bool {
        let size = format.orientation.turned(format.dimensions)
        return [(width, size.width), (height, size.height)].allSatisfy { bound, side in
            bound.map { $0 == 0 || side <= $0 } ?? true
        }
    }
}
