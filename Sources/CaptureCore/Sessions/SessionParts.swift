public import BusProtocol

/// A device of a session: AVFoundation's `AVCaptureDeviceInput`, with what the session wants of it.
public struct SessionInput: Hashable, Sendable {
    /// The device's id.
    public var device: String
    /// What the client has chosen itself: the session's preset is `inputPriority` then. nil: what the preset gives.
    public var activeFormat: FormatRequest?
    /// nil: what the format, or the preset, gives.
    public var frameRate: FrameRateRequest?
    /// The device's.
    public var mediaType: MediaType
    /// Where a microphone is to listen.
    public var preferredDataSource: DataSourcePreference

    public init(
        device: String, activeFormat: FormatRequest? = nil, frameRate: FrameRateRequest? = nil,
        mediaType: MediaType = .video, preferredDataSource: DataSourcePreference = .auto
    ) {
        self.device = device
        self.activeFormat = activeFormat
        self.frameRate = frameRate
        self.mediaType = mediaType
        self.preferredDataSource = preferredDataSource
    }
}

/// At which of a microphone's data sources a session listens.
public enum DataSourcePreference: Hashable, Sendable {
    /// The one on the side to which the session's camera looks; where there is none, whichever is set.
    case auto
    /// Its id.
    case source(String)

    /// The source that is meant; nil: whichever is set.
    ///
    /// - Parameter position: where the session's camera looks; nil: it has none.
    public func source(of sources: [SoundDataSource], camera position: DevicePosition?) -> SoundDataSource? {
        switch self {
        case .source(let id): sources.first { $0.id == id }
        case .auto:
            switch position {
            case .front: sources.first { $0.orientation == .front }
            case .back: sources.first { $0.orientation == .back }
            case .external, .unspecified, nil: nil
            }
        }
    }
}

/// What a session's pictures go to: AVFoundation's `AVCaptureOutput`, and the picture that it wants.
public struct SessionOutput: Hashable, Sendable {
    public enum Kind: String, Hashable, Sendable, CaseIterable {
        case photo, movie, videoData, audioData, preview, metadata

        /// Its pictures are a topic that anybody may subscribe to.
        public var isTopic: Bool { self == .videoData || self == .preview }

        /// What it takes of inputs.
        public var mediaTypes: Set<MediaType> {
            switch self {
            case .photo, .videoData, .preview: [.video]
            case .movie: [.video, .audio]
            case .audioData: [.audio]
            case .metadata: []
            }
        }

        /// What it has where nothing else was asked: pixels that programs can use as they are, or what a page can show.
        var encoding: Rendition.Encoding { self == .preview ? .jpeg : .bgr }
    }

    /// Unique within the session.
    public var id: String
    public var kind: Kind
    /// nil: ``Kind/encoding``.
    public var format: Rendition.Encoding?
    /// nil: the size that the session wants of the device. A side of 0 keeps the aspect.
    public var dimensions: Dimensions?
    /// At most so many frames a second; nil: all.
    public var frameRate: Double?
    /// JPEG quality, 1–100.
    public var quality: Int?
    /// Of sound; nil: what holds all of the microphone's.
    public var soundFormat: SoundRendition.Encoding?
    /// Frames of sound a second, and its channels; nil: as the session wants them of the device, else as that is set.
    public var rate: Int?
    public var channels: Int?
    /// A movie's: what the session's user may not have is black, or silence.
    public var isBlankWhenDenied = false
    /// A photo output's: milliseconds for which its cameras' pictures are held, while the session runs.
    public var preRoll = 0
    /// A photo output's: the photo settings whose scene conditions are published; nil: none are.
    public var sceneMonitoring: SceneMonitor.Settings?
    /// A photo output's: what its photos may be.
    public var livePhoto = LivePhotoOutput()

    public init(
        id: String, kind: Kind, format: Rendition.Encoding? = nil, dimensions: Dimensions? = nil,
        frameRate: Double? = nil, quality: Int? = nil
    ) {
        self.id = id
        self.kind = kind
        self.format = format
        self.dimensions = dimensions
        self.frameRate = frameRate
        self.quality = quality
    }
}

/// Whether left and right are exchanged (`AVCaptureConnection.isVideoMirrored`).
public enum VideoMirroring: Hashable, Sendable {
    case on, off
    /// On while the input looks at who uses it (`automaticallyAdjustsVideoMirroring`): decided anew with each input.
    case auto

    public func isOn(position: DevicePosition) -> Bool {
        switch self {
        case .on: true
        case .off: false
        case .auto: position == .front
        }
    }
}

/// What joins an input to an output: AVFoundation's `AVCaptureConnection`. There is one for each pair of which the one
/// has what the other takes.
public struct SessionConnection: Hashable, Sendable {
    /// The device's id.
    public var input: String
    /// The output's id.
    public var output: String
    public var videoOrientation: CaptureOrientation
    public var videoMirrored: VideoMirroring
    /// False: the output gets nothing from this input.
    public var isEnabled: Bool
    /// What is on is the device's business, which others may have too.
    public var preferredVideoStabilizationMode: VideoStabilizationMode

    public init(
        input: String, output: String, videoOrientation: CaptureOrientation = .landscapeRight,
        videoMirrored: VideoMirroring = .off, isEnabled: Bool = true,
        preferredVideoStabilizationMode: VideoStabilizationMode = .off
    ) {
        self.input = input
        self.output = output
        self.videoOrientation = videoOrientation
        self.videoMirrored = videoMirrored
        self.isEnabled = isEnabled
        self.preferredVideoStabilizationMode = preferredVideoStabilizationMode
    }
}

/// A device as a session has to know it.
public struct SessionDevice: Hashable, Sendable {
    public var id: String
    public var mediaType: MediaType
    public var position: DevicePosition
    /// nil: it has not been looked at yet; what can't be checked is taken.
    public var formats: [CaptureFormat]?
    /// The words that its control `videoStabilizationMode` takes; empty: it has none.
    public var stabilizationWords: [String]
    /// What a microphone can do, and how it is set; nil: it is none, or has not been opened yet.
    public var sound: SessionMicrophone?

    public init(
        id: String, mediaType: MediaType = .video, position: DevicePosition, formats: [CaptureFormat]?,
        stabilizationWords: [String] = [], sound: SessionMicrophone? = nil
    ) {
        self.stabilizationWords = stabilizationWords
        self.sound = sound
        self.id = id
        self.mediaType = mediaType
        self.position = position
        self.formats = formats
    }
}
