public import CaptureCore
import FFmpeg
import Glibc
import LinuxIO
import Synchronization

/// A recorded movie, or a folder of pictures, as a camera: in real time, again and again or once.
///
/// Motion JPEG is passed on unchanged, and H.264 where that format is chosen. Everything else is decoded. It begins
/// anew with each stream. Where it is played once, its end is a camera's that has been unplugged: it comes back when
/// another file is there, or when it is plugged in again by ``VirtualFault/replug``.
public final class ReplayCamera: UncontrolledSource {
    public let identity: DeviceIdentity

    private let path: String
    private let loops: Bool
    private let rate: FrameDuration?
    private let maxGap: Int64?
    private var material: ReplayMaterial?
    private var selection: FormatSelection?
    private var player: ReplayPlayer?
    private let state = ReplayState()

    /// - Parameters:
    ///   - path: of a movie, or of a folder with pictures, which are taken in the order of their names.
    ///   - loops: from the beginning again at the end.
    ///   - frameDuration: of pictures (nil: ten a second), and of movies that don't say theirs (nil: 25 a second).
    ///   - maxGap: nanoseconds that a pause between two frames of a movie lasts at most; nil: as long as in the movie.
    public init(
        _ identity: DeviceIdentity, path: String, loops: Bool, frameDuration: FrameDuration? = nil,
        maxGap: Int64? = nil
    ) {
        self.identity = identity
        self.path = path
        self.loops = loops
        rate = frameDuration
        self.maxGap = maxGap
    }

    deinit { player?.end() }

    // MARK: Opening

    public func open() throws(SourceError) -> DeviceDescription {
        var material = try ReplayMaterial(path, rate: rate)
        guard state.ended != material.signature else { throw Self.ended(path) }
        if let rest = state.rest {
            let isOfThis = rest.signature == material.signature && rest.pixelFormat == selection?.pixelFormat
            if isOfThis { material.picture = rest.picture } else { state.rest = nil }
        }
        let formats = material.formats
        self.material = material
        let isKnown = formats.contains {
            $0.pixelFormat == selection?.pixelFormat && $0.dimensions == selection?.dimensions
        }
        // Of H.264 no other renditions can be had: who wants it chooses it.
        let like = formats.first { $0.pixelFormat == selection?.pixelFormat }
        if !isKnown, let first = like ?? formats.first(where: { $0.pixelFormat != .h264 }) ?? formats.first {
            selection = FormatSelection(pixelFormat: first.pixelFormat, dimensions: first.dimensions)
        }
        return DeviceDescription(
            identity: identity, formats: formats, controls: [], orientation: material.orientation)
    }

    public func close() {
        endPlayer()
        material = nil
    }

    private static func ended(_ path: String) -> SourceError {
        SourceError(.disconnected, operation: "replay", errno: ENODEV, message: "\(path) has been played to its end")
    }

    private func opened(_ operation: String) throws(SourceError) -> (ReplayMaterial, FormatSelection) {
        guard let material, let selection else {
            throw SourceError(.failed, operation: operation, message: "\(identity.bus): not open")
        }
        return (material, selection)
    }

    // MARK: Format and rate

    public func activeFormat() throws(SourceError) -> FormatSelection { try opened("VIDIOC_G_FMT").1 }

    public func formatDescription() throws(SourceError) -> FormatDescription {
        let (material, selection) = try opened("VIDIOC_G_FMT")
        return material.description(selection)
    }

    public func tryFormat(_ selection: FormatSelection) throws(SourceError) -> FormatSelection {
        let (material, _) = try opened("VIDIOC_TRY_FMT")
        let formats = material.formats
        guard let format = formats.first(where: { $0.pixelFormat == selection.pixelFormat }) ?? formats.first else {
            throw SourceError(.refused, operation: "VIDIOC_TRY_FMT", errno: EINVAL, message: "\(path) has no format")
        }
        return FormatSelection(pixelFormat: format.pixelFormat, dimensions: format.dimensions)
    }

    public func setFormat(_ selection: FormatSelection) throws(SourceError) -> FormatSelection {
        let given = try tryFormat(selection)
        guard player == nil else {
            throw SourceError(
                .inUse, operation: "VIDIOC_S_FMT", errno: EBUSY,
                message: "\(identity.bus): the format can't be changed while it streams")
        }
        self.selection = given
        return given
    }

    public func frameDuration() throws(SourceError) -> FrameDuration? { try opened("VIDIOC_G_PARM").0.frameDuration }

    public func setFrameDuration(_ duration: FrameDuration) throws(SourceError) -> FrameDuration {
        try opened("VIDIOC_S_PARM").0.frameDuration
    }

    // MARK: Streaming

    public func startStreaming(_ allocate: SlotAllocator) throws(SourceError) -> any FrameStream {
        let (material, selection) = try opened("VIDIOC_STREAMON")
        endPlayer()
        let description = material.description(selection)
        guard let layout = FrameLayout.packed(description) else {
            throw SourceError(
                .refused, operation: "VIDIOC_STREAMON", errno: EINVAL,
                message: "\(identity.bus): \(selection.pixelFormat.name) is not supported here; choose another format")
        }
        let rest = state.takeRest(material, selection, description)
        let reader = if let rest { rest } else { try material.reader(description) }
        let queue = try VirtualQueue(try allocate(layout, layout.totalBytes))
        let (state, path) = (state, path)
        let again: () throws(SourceError) -> any ReplayReader = { () throws(SourceError) in
            // Whoever takes the file away, or replaces it, is heard at the next pass.
            guard try ReplayMaterial.look(path).0 == material.signature else {
                throw SourceError(
                    .failed, operation: "replay", message: "\(path) has been replaced; it is opened again")
            }
            return try material.reader(description)
        }
        player = try ReplayPlayer(
            queue, layout, material.frameDuration, maxGap: maxGap, material.picture, reader: reader,
            again: loops ? again : nil,
            onEnd: {
                state.ended = material.signature
                return Self.ended(path)
            },
            onChange: { reader, picture in
                var other = material
                other.picture = picture
                let next = FormatSelection(pixelFormat: selection.pixelFormat, dimensions: other.dimensions)
                guard other.description(next) != description else { return nil }
                state.rest = ReplayState.Rest(
                    reader: reader, picture: picture, pixelFormat: selection.pixelFormat,
                    signature: material.signature)
                let isResized = next.dimensions != selection.dimensions
                return SourceError(
                    .changed(resolution: isResized), operation: "replay",
                    message: isResized
                        ? "pictures of \(next.dimensions) follow in \(path)"
                        : "pictures with other colours, or pixels of another shape, follow in \(path)")
            })
        return VirtualStream(queue, layout, material.frameDuration)
    }

    public func stopStreaming() throws(SourceError) { endPlayer() }

    private func endPlayer() {
        player?.end()
        player = nil
    }

    // MARK: Faults

    public func injectFault(_ fault: VirtualFault) throws(SourceError) {
        guard fault == .replug || fault == .none else {
            throw SourceError(
                .refused, operation: "fault", errno: EINVAL,
                message: "\(identity.bus): a replay supports only the fault 'replug'")
        }
        state.ended = nil
    }
}

/// What the player's thread tells the device thread.
private final class ReplayState: Sendable {
    /// What is left of a pass when something else is stated about its pictures. Its reader goes from one player's
    /// thread, which has ended, to the next one.
    struct Rest: @unchecked Sendable {
        var reader: any ReplayReader
        var picture: PictureDescription
        var pixelFormat: PixelFormat
        var signature: ReplayMaterial.Signature
    }

    private let content = Mutex<(ended: ReplayMaterial.Signature?, rest: Rest?)>((nil, nil))

    /// The material that has been played to its end.
    var ended: ReplayMaterial.Signature? {
        get { content.withLock { $0.ended } }
        set { content.withLock { $0.ended = newValue } }
    }

    var rest: Rest? {
        get { content.withLock { $0.rest } }
        set { content.withLock { $0.rest = newValue } }
    }

    /// The reader that continues the pass of the last stream; nil: a new pass begins.
    func takeRest(
        _ material: ReplayMaterial, _ selection: FormatSelection, _ description: FormatDescription
    ) -> (any ReplayReader)? {
        guard let rest, rest.signature == material.signature, rest.pixelFormat == selection.pixelFormat,
            rest.picture == material.picture
        else { return nil }
        self.rest = nil
        rest.reader.goOn(description)
        return rest.reader
    }
}
