import ArgumentParser
import BusServer
import Delivery
import Glibc
import LinuxIO
import Logging
import Matcher
import ServiceCommand

@main
struct CameraBusMatcher: StartedCommand {
    static let configuration = CommandConfiguration(
        commandName: "camerabus-matcher",
        abstract:
            "The process that matches the frames of a rig's cameras. camerabusd starts it; do not start it by hand.",
        discussion: """
            It subscribes to the cameras as any client does, and only while a client subscribes to \
            set/NAME/RENDITION/ on media/NAME.sock. It reads the rig from state/rig/NAME/. It ends when no client has \
            been connected for ten seconds. Its standard input may be the listening socket.

            Exit status: 0 ended in order, 1 failed, 64 usage, 75 another matcher has the rig.
            """)

    @Option(help: ArgumentHelp("The rig's name.", valueName: "name"))
    var set: String

    @Option(help: ArgumentHelp("The directory of the bus's sockets.", valueName: "directory"))
    var runtimeDir: String

    @Option(
        help: ArgumentHelp(
            "The file with the access list of the cameras; it is read again whenever it changes.", valueName: "file"))
    var accessList: String?

    @Option(help: ArgumentHelp("The group that may connect to the rig's socket.", valueName: "name"))
    var group: String?

    @Option(help: ArgumentHelp("trace, debug, info, notice, warning, error or critical.", valueName: "level"))
    var logLevel = "info"

    @Option(help: ArgumentHelp("Distinct renditions of which sets are made at the same time.", valueName: "count"))
    var renditions = 8

    @Option(help: ArgumentHelp("Connections of one user to the rig's socket.", valueName: "count"))
    var connectionsPerUser = 128

    @Option(help: ArgumentHelp("Connections to the rig's socket in total.", valueName: "count"))
    var connections = 1024

    func validate() throws {
        guard Logger.Level(rawValue: logLevel) != nil else {
            throw ValidationError("there is no log level '\(logLevel)'")
        }
        guard (1...64).contains(renditions), connectionsPerUser > 0, connections > 0 else {
            throw ValidationError("a count is out of its range")
        }
    }

    func run() throws {
        // Before any other thread starts, so that no other thread receives a signal.
        let signals = try SignalDescriptor([SIGTERM, SIGINT, SIGHUP])
        LoggingSystem.bootstrap(LineLogHandler.init(label:))
        var logger = Logger(label: "camerabus-matcher")
        logger.logLevel = Logger.Level(rawValue: logLevel) ?? .info
        var options = SetMatcherOptions(set: set, runtimeDirectory: runtimeDir)
        options.group = group
        options.accessListPath = accessList
        options.renditions = renditions
        options.connectionsPerUser = connectionsPerUser
        options.connections = connections
        do {
            throw ExitCode(try SetMatcher(options, logger: logger).run(signals: signals).rawValue)
        } catch let error as StartError {
            logger.log(level: error.ending == .deviceTaken ? .info : .critical, "\(error)")
            throw ExitCode(error.ending.rawValue)
        }
    }
}
