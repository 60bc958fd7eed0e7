import ArgumentParser
import BusServer
import Gateway
import Glibc
import LinuxIO
import Logging
import ServiceCommand

@main
struct CameraBusGateway: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "camerabus-gateway",
        abstract: "Serves the web page of a CameraBus, and connects clients on other machines to its cameras.",
        discussion: """
            The page is at http://127.0.0.1:7380/ unless the configuration says otherwise ([web]). Other machines need \
            tokens, and a proxy for TLS. The gateway also serves pictures (/camera/<id>.jpg, .mjpg), metrics for \
            Prometheus (/metrics) and /healthz.

            For programs on other machines the gateway listens on tcp.listen, if that is set: requests at this port, \
            state and events at the next, pictures and sound at the one after. A client needs a key whose public half \
            is in the keys file ('camerabus keys'), with the role view, control or admin. The gateway reads the file \
            again after each change; a removed client loses its access within a second. The gateway makes its own keys \
            at its first start, in $STATE_DIRECTORY or at tcp.server_key. Clients need the public key; it is in \
            server.pub next to it, and in the log.

            The bus accepts the gateway only if it runs as one of these users: camerabus-gateway (as the service \
            does), permission.gateway in camerabus.toml, or the user of the bus.

            SIGHUP reads keys and tokens again; SIGTERM ends the gateway.

            Exit status: 0 ended normally, 1 could not serve, 2 wrong usage, 78 the configuration is invalid: correct \
            it, then start again.
            """,
        version: "0.1.0")

    @Option(help: ArgumentHelp("Read this configuration file.", valueName: "file"), completion: .file())
    var config: String?

    @Option(
        help: ArgumentHelp(
            "The directory of the bus's sockets (default: found like clients find it).", valueName: "directory"),
        completion: .directory)
    var runtimeDir: String?

    @Option(
        help: ArgumentHelp("The log level: trace, debug, info, notice, warning, error or critical.", valueName: "level")
    )
    var logLevel: String?

    func validate() throws {
        if let logLevel, Logger.Level(rawValue: logLevel) == nil {
            throw ValidationError("there is no log level '\(logLevel)'")
        }
    }

    func run() throws {
        // Before any other thread is started, so that no thread takes a signal away.
        let signals = try SignalDescriptor([SIGTERM, SIGINT, SIGHUP])
        LoggingSystem.bootstrap(LineLogHandler.init(label:))
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
