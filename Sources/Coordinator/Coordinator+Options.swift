public import CaptureCore

extension Coordinator {
    /// What the command line says; it goes before the configuration file.
    public struct Options: Sendable {
        /// Read again on SIGHUP; nil: no file.
        public var configurationPath: String?
        public var runtimeDirectory: String?
        /// Where aliases and settings are kept over reboots; nil: the configuration's, or the usual place.
        public var stateDirectory: String?
        public var virtualCameras: Int?
        /// nil: as the configuration says, else one where there are virtual cameras.
        public var virtualMicrophones: Int?
        /// Beside those of the configuration.
        public var replays: [ReplayDescription] = []
        /// What the virtual cameras are like, in their order; those beyond are plain. Empty: as the configuration says.
        public var virtualProfiles: [VirtualProfile] = []
        public var usesHardware = true
        /// False: the machine's pressure is not watched, whatever the configuration says.
        public var watchesPressure = true
        /// The worker's program; nil: `camerabus-worker` beside this one.
        public var workerProgram: String?
        /// The matcher's program; nil: `camerabus-matcher` beside this one.
        public var matcherProgram: String?
        /// The recorder's program; nil: `camerabus-recorder` beside this one.
        public var recorderProgram: String?
        /// The librarian's program; nil: `camerabus-librarian` beside this one.
        public var librarianProgram: String?

        public init() {}
    }

    /// Why it can't start. The text says what to do.
    public struct StartError: Error, CustomStringConvertible, Sendable {
        public var description: String
    }
}
