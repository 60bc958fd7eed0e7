import BusProtocol
import BusServer
import Glibc
public import LinuxIO
public import Logging
import Settings
import ZeroMQ

/// Connects other machines and browsers to the bus. For the bus it is a normal client that may state for whom it asks.
public final class Gateway {
    private let loop: Loop
    private let signals: SignalDescriptor
    private let service: ServiceManager
    private var remote: RemoteInterface?
    private var web: WebInterface?
    private var hasFailed = false

    /// Descriptors that connections may not take.
    private static let reserve = 256

    /// Opens all that the configuration says.
    ///
    /// - Parameter signals: SIGTERM, SIGINT and SIGHUP, blocked before any other thread was started.
    public init(_ options: GatewayOptions, signals: SignalDescriptor, logger: Logger) throws(GatewayError) {
        self.signals = signals
        do throws(DescriptorShortage) {
            try CurrentProcess.requireDescriptors(2 * Self.reserve, for: "camerabus-gateway")
        } catch {
            throw GatewayError(description: "\(error)", isMisconfigured: true)
        }
        let configuration = try Self.configuration(options)
        var logger = logger
        if let level = Logger.Level(rawValue: options.logLevel ?? configuration.logLevel) { logger.logLevel = level }
        service = ServiceManager(environment: CurrentProcess.environment)
        do throws(SystemError) {
            loop = try Loop()
        } catch {
            throw GatewayError(description: "\(error)")
        }
        let state = CurrentProcess.environment("STATE_DIRECTORY").flatMap {
            $0.split(separator: ":").first.map(String.init)
        }
        Context.reserveDescriptors(Self.reserve)
        let directory = try Self.directory(options)
        let place: BusEndpoints
        let (events, departures): (BusEvents, DepartureReporter)
        do throws(ZeroMQError) {
            let context = try Context()
            // Each connection that requests come over has one to the bus, with its monitor.
            let connections = (configuration.tcp?.connections ?? 0) + (configuration.web?.connections ?? 0)
            context.setMaximumSockets(4 * connections + 1024)
            place = BusEndpoints(context, loop, directory)
            events = try BusEvents(place)
            departures = try DepartureReporter(place, logger: logger)
        } catch {
            throw GatewayError(description: "\(error)")
        }
        let media = MediaDistributor(place, events, logger: logger)
        if let tcp = configuration.tcp {
            remote = try RemoteInterface(tcp, place, media, events, departures, stateDirectory: state, logger: logger)
        }
        if let settings = configuration.web {
            let busAccess = try WebBusAccess(place, media, events, departures, settings, logger: logger) {
                [weak self] in
                self?.remote?.counts ?? []
            }
            let folder =
                state
                ?? configuration.tcp?.serverKeyPath.map { String($0[..<($0.lastIndex(of: "/") ?? $0.startIndex)]) }
            web = try WebInterface(busAccess, keptPath: folder.map { "\($0)/web-tokens.known" }, logger: logger)
        }
        for warning in configuration.warnings { logger.warning("\(warning)") }
        loop.watch(.descriptor(signals.rawValue)) { [weak self] in self?.readSignals() }
    }

    /// Serves until SIGTERM or SIGINT.
    public func run() throws(GatewayError) {
        web?.run { [weak self] in
            self?.hasFailed = true
            self?.loop.stop()
        }
        service.notify("READY=1")
        feedWatchdog()
        do throws(ZeroMQError) {
            try loop.run()
        } catch {
            throw GatewayError(description: "\(error)")
        }
        service.notify("STOPPING=1")
        if hasFailed { throw GatewayError(description: "the HTTP server has ended; the log shows the cause") }
        remote = nil
    }

    private func readSignals() {
        while let signal = signals.next() {
            guard signal == SIGHUP else { return loop.stop() }
            service.notify("RELOADING=1")
            remote?.reload()
            web?.reload()
            service.notify("READY=1")
        }
    }

    private func feedWatchdog() {
        guard let interval = service.watchdogInterval else { return }
        service.notify("WATCHDOG=1")
        loop.schedule(at: MonotonicClock.now() + interval) { [weak self] in self?.feedWatchdog() }
    }

    private static func configuration(_ options: GatewayOptions) throws(GatewayError) -> GatewayConfiguration {
        guard let path = options.configurationPath else { return GatewayConfiguration() }
        do {
            let bytes = try File.readAtOnce(path, limit: 1 << 20)
            guard let text = String(validating: bytes, as: UTF8.self) else {
                throw GatewayError(description: "\(path) is not valid UTF-8", isMisconfigured: true)
            }
            return try GatewayConfiguration(toml: text)
        } catch let error as SettingsError {
            throw GatewayError(description: "\(path): \(error.description)", isMisconfigured: !error.isTemporary)
        } catch let error as GatewayError {
            throw error
        } catch {
            throw GatewayError(description: "\(error)")
        }
    }

    /// Where the bus is, or will be.
    private static func directory(_ options: GatewayOptions) throws(GatewayError) -> RuntimeDirectory {
        let found: [RuntimeDirectory]
        do throws(RuntimeDirectory.PathError) {
            found = try RuntimeDirectory.clientCandidates(
                flag: options.runtimeDirectory, environment: CurrentProcess.environment(), uid: CurrentProcess.uid)
        } catch {
            throw GatewayError(description: error.description)
        }
        guard let directory = found.first(where: { UnixSocket.isLive($0.commandSocket) }) ?? found.first else {
            throw GatewayError(description: "no runtime directory of a bus is known; name one with --runtime-dir")
        }
        return directory
    }
}
