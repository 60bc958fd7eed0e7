import ArgumentParser
import CaptureCore
import Coordinator
import Logging
import ServiceCommand
import Settings

@main
struct CameraBusDaemon: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "camerabusd",
        abstract: "The coordinator of CameraBus: one service owns the cameras and microphones, many programs use them.",
        discussion: """
            It starts one camerabus-worker for each camera and microphone, one camerabus-matcher for each rig with \
            readers, one camerabus-recorder for each movie, and one camerabus-librarian for each question about \
            recordings.

            The sockets command.sock and events.sock are in the runtime directory: --runtime-dir, else \
            $CAMERABUS_RUNTIME_DIR, else /run/camerabus for root, else $XDG_RUNTIME_DIR/camerabus, else \
            /tmp/camerabus-UID. Settings (devices.json, profiles.json, rigs.json) and recordings (library) are in \
            --state-dir, else bus.state_dir of the configuration, else $STATE_DIRECTORY, else 'state' in the runtime \
            directory if that was named, else /var/lib/camerabus for root, else $XDG_STATE_HOME/camerabus or \
            ~/.local/state/camerabus.

            SIGHUP: read the configuration again, and search for devices. SIGTERM: end, with all started processes.

            Exit status: 0 ended in order, 1 could not start, 2 usage.
            """,
        version: "0.1.0")

    @Option(help: ArgumentHelp("Read this configuration file.", valueName: "file"))
    var config: String?

    @Option(help: ArgumentHelp("Put sockets and state here.", valueName: "directory"))
    var runtimeDir: String?

    @Option(
        help: ArgumentHelp(
            "Keep aliases and settings of devices here, over reboots (default: see above).", valueName: "directory"))
    var stateDir: String?

    @Option(
        help: ArgumentHelp(
            "Add virtual cameras cam0, cam1, …, and the microphone mic0 with them (default: 2 when there is neither "
                + "hardware nor a configuration file).",
            valueName: "count"))
    var virtual: Int?

    @Option(
        help: ArgumentHelp(
            "Add virtual microphones mic0, mic1, … (default: 1 with virtual cameras).", valueName: "count"))
    var virtualMicrophones: Int?

    @Option(
        help: ArgumentHelp(
            """
            Play a movie, or a folder of pictures, as a camera, again and again; may be given more than once. The configuration can say \
            more of it.
            """, valueName: "[name=]path"), completion: .file())
    var replay: [String] = []

    @Option(
        help: ArgumentHelp(
            "What a virtual camera is like: plain or iphone6; once for each, in their order.", valueName: "profile"))
    var virtualProfile: [String] = []

    @Flag(help: "Don't look for cameras of this machine.")
    var noHardware = false

    @Flag(help: "Don't watch this machine's memory, temperature and load (system pressure).")
    var noPressure = false

    @Option(help: ArgumentHelp("The worker's program (default: camerabus-worker beside this one).", valueName: "file"))
    var worker: String?

    @Option(
        help: ArgumentHelp("The matcher's program (default: camerabus-matcher beside this one).", valueName: "file"))
    var matcher: String?

    @Option(
        help: ArgumentHelp("The recorder's program (default: camerabus-recorder beside this one).", valueName: "file"))
    var recorder: String?

    @Option(
        help: ArgumentHelp(
            "The librarian's program (default: camerabus-librarian beside this one).", valueName: "file"))
    var librarian: String?

    func validate() throws {
        for name in virtualProfile where VirtualProfile(rawValue: name) == nil {
            throw ValidationError("there is no virtual profile '\(name)'; use plain or iphone6")
        }
        if virtualProfile.count > 64 { throw ValidationError("--virtual-profile is given more than 64 times") }
        if let virtual, !(0...64).contains(virtual) { throw ValidationError("--virtual takes a number from 0 to 64") }
        if let virtualMicrophones, !(0...64).contains(virtualMicrophones) {
            throw ValidationError("--virtual-microphones takes a number from 0 to 64")
        }
        do { _ = try Configuration.replays(replay) } catch { throw ValidationError(error.description) }
    }

    func run() throws {
        LoggingSystem.bootstrap(CommonLevelLogHandler.init(label:))
        var options = CoordinatorOptions()
        options.configurationPath = config
        options.runtimeDirectory = runtimeDir
        options.stateDirectory = stateDir
        options.virtualCameras = virtual
        options.virtualMicrophones = virtualMicrophones
        options.replays = try Configuration.replays(replay)
        options.virtualProfiles = virtualProfile.compactMap(VirtualProfile.init)
        options.usesHardware = !noHardware
        options.watchesPressure = !noPressure
        options.workerProgram = worker
        options.matcherProgram = matcher
        options.recorderProgram = recorder
        options.librarianProgram = librarian
        let logger = Logger(label: "camerabusd")
        try serve(logger) { try Coordinator(options, logger: logger).run() }
    }
}
