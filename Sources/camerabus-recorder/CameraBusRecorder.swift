import ArgumentParser
import BusProtocol
import BusServer
import CaptureCore
import Glibc
import JSON
import LinuxIO
import Logging
import Recorder
import ServiceCommand

@main
struct CameraBusRecorder: StartedCommand {
    static let configuration = CommandConfiguration(
        commandName: "camerabus-recorder",
        abstract:
            "Records one movie, or those of live photos. camerabusd starts it; there is no need to do so by hand.",
        discussion: """
            It reads pictures from media/DEVICE.ring and sound from media/DEVICE.sock. It writes the movie and its \
            side-car file, or sends the movie to the server that the request names. It reports to \
            internal/recorders.sock. It ends with the movie; SIGTERM finishes the movie first. For live photos it \
            holds the last seconds, and writes a movie in internal/live/ for each photo, until it is ordered to end.

            Exit status: 0 the movie has ended, 1 failed, 64 usage, 75 another recorder has the movie.
            """)

    @Option(help: ArgumentHelp("The movie's id.", valueName: "id"))
    var movie: String

    @Option(help: ArgumentHelp("Where the bus has its sockets.", valueName: "directory"))
    var runtimeDir: String

    @Option(help: ArgumentHelp("What is to be recorded.", valueName: "json"))
    var request: String

    @Option(help: ArgumentHelp("trace, debug, info, notice, warning, error or critical.", valueName: "level"))
    var logLevel = "info"

    func validate() throws {
        guard Logger.Level(rawValue: logLevel) != nil else {
            throw ValidationError("there is no log level '\(logLevel)'")
        }
        do {
            guard try parsed().movie == movie else { throw ValidationError("--request belongs to another movie") }
        } catch let error as BusError {
            throw ValidationError("--request: \(error.message)")
        } catch is JSONError {
            throw ValidationError("--request is not valid JSON")
        }
    }

    private func parsed() throws -> MovieRequest { try MovieRequest(json: try JSONValue(parsing: request)) }

    func run() throws {
        // Before any other thread is started, so that no thread takes a signal away.
        let signals = try SignalDescriptor([SIGTERM, SIGINT, SIGHUP])
        LoggingSystem.bootstrap(LineLogHandler.init(label:))
        var logger = Logger(label: "camerabus-recorder")
        logger.logLevel = Logger.Level(rawValue: logLevel) ?? .info
        // A fragment lies in one block until it is written.
        ProcessMemory.keepFreed(bytes: 64 << 20)
        do {
            let options = RecorderOptions(try parsed(), runtimeDirectory: runtimeDir)
            let ending =
                options.request.live == nil
                ? try Recorder(options, logger: logger).run(signals: signals)
                : try LivePhotoRecorder(options, logger: logger).run(signals: signals)
            throw ExitCode(ending.rawValue)
        } catch let error as RecorderError {
            logger.critical("\(error)")
            throw ExitCode(error.ending.rawValue)
        }
    }
}
