import BusServer
import CaptureCore
import LinuxIO
import Logging

/// SIGHUP
extension Coordinator {
    /// Reads the configuration again. A file that can't be read or is wrong changes nothing. Who has which role is as before until those
    /// whom it names have been looked up.
    func reload() {
        service.notify("RELOADING=1")
        do {
            let read = try StartUp.readConfiguration(options.configurationPath)
            try lookUpNames(read)
            configuration = read
            fleet.launch = StartUp.launch(fleet.launch.program, directory, hasGroup: group != nil, configuration)
            recorders.logLevel = configuration.logLevel
            library.directory = moviePlace.library
            connections.setLimits(perUser: configuration.connectionsPerUser, total: configuration.connections)
            fleet.order = DeviceOrder(configured: configuration.order)
            rigs.setConfigured(configuration.rigs)
            // The handler's level, where it has one for all.
            var logger = logger
            if let level = Logger.Level(rawValue: configuration.logLevel) { logger.logLevel = level }
            logger.info("configuration read again")
            refusal = nil
            discoverDevices()
        } catch {
            logger.error("the configuration is left as it was", metadata: ["error": "\(error)"])
            refusal = .configurationRefused("\(error)")
            tellProblems()
            service.notify("READY=1")
        }
    }

    // A name service may be a network away, and has nobody here wait for it.
    private func lookUpNames(_ configuration: Configuration) throws(SystemError) {
        if lookUp == nil {
            lookUp = try BackgroundWork(
                loop, name: "names", work: { AuthorizationPolicy.resolved($0, owner: CurrentProcess.uid) },
                then: { [weak self] in self?.setPolicy($0.policy, unknown: $0.unknown) })
        }
        lookUp?.start(configuration)
    }

    private func setPolicy(_ policy: AuthorizationPolicy, unknown: [String]) {
        guard !isStopping else { return }
        permission.setPolicy(policy)
        connections.setUnbounded(policy.gateway)
        unknownUsers = unknown.map { .userUnknown($0) }
        tellProblems()
        service.notify("READY=1")
    }
}
