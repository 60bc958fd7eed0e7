import ArgumentParser
import Gateway
import Glibc
import LinuxIO
import Logging
import ServiceCommand

@main
struct CameraBusGateway: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "camerabus-gateway",
        abstract: "Serves the page of a CameraBus, and lets clients on other machines use its cameras.",
        discussion: """
            Browsers find the page at http://127.0.0.1:7380/ unless the configuration says otherwise ([web]); beyond the machine it needs tokens, and a proxy for TLS. \
            Beside it are pictures (/camera/<id>.jpg, .mjpg), numbers for Prometheus (/metrics) and /healthz.

            For programs on other machines it listens where tcp.listen says, and on nothing without that: requests at that port, state and events at the next, \
            pictures and sound at the one after. Who comes in has a key whose public half stands in the file of keys ('camerabus keys'), \
            with the role view, control or admin; that file is read again whenever it changes, and who is not in it any more loses all it has \
            within a second. The gateway's own keys are made at its first start, in $STATE_DIRECTORY or where tcp.server_key says; \
            the public one, which clients need, is in server.pub beside them and in the log.

            The bus has to know by which user it runs: camerabus-gateway, as the service does, or permission.gateway in camerabus.toml; or the bus's own.

            SIGHUP has keys and tokens read again; SIGTERM ends it.

            Exit status: 0 ended in order, 1 could not serve, 2 usage, 78 the configuration says what can't be: mend it, and start it again.
            """,
        version: "0.1.0")

    @Option(help: ArgumentHelp("Read this configuration file.", valueName: "file"), completion: .file())
    var config: String?

    @Option(
        help: ArgumentHelp("Where the bus has its sockets (default: as clients look for it).", valueName: "directory"),
        completion: .directory)
    var runtimeDir: String?

    @Option(help: ArgumentHelp("trace, debug, info, notice, warning, error or critical.", valueName: "level"))
    var logLevel: String?

    func validate() throws {
        if let logLevel, Logger.Level(rawValue: logLevel) == nil {
            throw ValidationError("there is no level '\(logLevel)'")
        }
    }

    func run() throws {
        // Before any other thread is started, so that no thread takes a signal away.
        let signals = try SignalDescriptor([SIGTERM, SIGINT, SIGHUP])
        LoggingSystem.bootstrap(StreamLogHandler.standardError)
        let logger = Logger(label: "camerabus-gateway")
        var options = GatewayOptions()
        options.configurationPath = config
        options.runtimeDirectory = runtimeDir
        options.logLevel = logLevel
        try serve(logger, isMisconfigured: \.isMisconfigured) { () throws(GatewayError) in
            try Gateway(options, signals: signals, logger: logger).run()
        }
    }
}
