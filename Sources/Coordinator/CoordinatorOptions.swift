public import CaptureCore

/// The options of the command line. They override the configuration file.
public struct CoordinatorOptions: Sendable {
    /// Read again on SIGHUP; nil: no file.
    public var configurationPath: String?
    public var runtimeDirectory: String?
    /// Where aliases and settings are kept over reboots; nil: the directory in the configuration, or the usual one.
    public var stateDirectory: String?
    public var virtualCameras: Int?
    /// nil: the number in the configuration, or one where there are virtual cameras.
    public var virtualMicrophones: Int?
    /// In addition to those of the configuration.
    public var replays: [ReplayDescription] = []
    /// The profiles of the virtual cameras, in their order; further cameras are plain. Empty: the profiles in the
    /// configuration.
    public var virtualProfiles: [VirtualProfile] = []
    public var usesHardware = true
    /// False: the machine's pressure is not watched, whatever the configuration says.
    public var watchesPressure = true
    /// The worker's program; nil: `camerabus-worker` in the directory of this program.
    public var workerProgram: String?
    /// The matcher's program; nil: `camerabus-matcher` in the directory of this program.
    public var matcherProgram: String?
    /// The recorder's program; nil: `camerabus-recorder` in the directory of this program.
    public var recorderProgram: String?
    /// The librarian's program; nil: `camerabus-librarian` in the directory of this program.
    public var librarianProgram: String?

    public init() {}
}

/// Why the coordinator can't start. The text says what to do.
public struct CoordinatorStartError: Error, CustomStringConvertible, Sendable {
    public var description: String
}
