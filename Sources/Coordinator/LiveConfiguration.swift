import CaptureCore

/// The options of the command line and the configuration file in force. SIGHUP replaces the latter.
final class LiveConfiguration: ProblemReporter {
    let options: CoordinatorOptions
    var current: Configuration
    /// Why the file was not read again.
    var refusal: Problem?

    /// - Throws: when the configuration file can't be read, or is wrong.
    init(_ options: CoordinatorOptions) throws(CoordinatorStartError) {
        self.options = options
        current = try StartUp.readConfiguration(options.configurationPath)
    }

    var problems: [Problem] { refusal.map { [$0] } ?? [] }

    /// Whether this machine's cameras and microphones are looked for.
    var usesHardware: Bool { options.usesHardware && current.usesHardware }

    /// Those of the command line first. Of two with the same name, the first is played.
    var replays: [ReplayDescription] {
        let own = Set(options.replays.map(\.uniqueID))
        return options.replays + current.replays.filter { !own.contains($0.uniqueID) }
    }
}
