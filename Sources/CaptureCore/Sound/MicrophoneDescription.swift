/// Where a microphone's data source is: AVFoundation's `AVAudioSession.Orientation`, as far as devices have one.
public enum DataSourceOrientation: String, Hashable, Sendable, CaseIterable {
    case front, back, bottom
}

/// One of the places that a microphone can listen at: AVFoundation's `AVAudioSessionDataSourceDescription`.
public struct SoundDataSource: Hashable, Sendable {
    /// Unique within its microphone; of its name, so that it stays the same (``CaptureControl/name(ofTitle:)``).
    public var id: String
    /// The driver's name for it.
    public var name: String
    /// nil: not known.
    public var orientation: DataSourceOrientation?

    public init(id: String, name: String, orientation: DataSourceOrientation?) {
        self.id = id
        self.name = name
        self.orientation = orientation
    }

    /// What a driver's name for a source says of where it is.
    public static func orientation(ofName name: String) -> DataSourceOrientation? {
        let words = CaptureControl.name(ofTitle: name).split(separator: "_")
        if words.contains("front") { return .front }
        if words.contains("rear") || words.contains("back") { return .back }
        return words.contains("bottom") ? .bottom : nil
    }
}

/// The controls that every microphone has which can do what they do, whatever its driver calls them.
public enum MicrophoneControl {
    /// Its name in ``CaptureControl/name``. An integer in hundredths of a decibel; 0 changes nothing of what the
    /// converter gives.
    public static let gain = "gain"
    /// A boolean: true lets nothing through.
    public static let mute = "mute"
    /// A menu: the index in ``MicrophoneDescription/dataSources``.
    public static let dataSource = "data_source"

    /// Their ids in ``CaptureControl/id`` and in events.
    public enum ID {
        public static let gain: UInt32 = 1
        public static let mute: UInt32 = 2
        public static let dataSource: UInt32 = 3
    }
}

/// What an opened microphone can do.
public struct MicrophoneDescription: Hashable, Sendable {
    public var identity: DeviceIdentity
    public var formats: [MicrophoneFormat]
    /// Of ``MicrophoneControl``, those that it has, with their ranges.
    public var controls: [CaptureControl]
    /// What it can be told to listen at, in the order of the menu ``MicrophoneControl/dataSource``; empty where there
    /// is no choice.
    public var dataSources: [SoundDataSource]

    public init(
        identity: DeviceIdentity, formats: [MicrophoneFormat], controls: [CaptureControl],
        dataSources: [SoundDataSource] = []
    ) {
        self.identity = identity
        self.formats = formats
        self.controls = controls
        self.dataSources = dataSources
    }
}
