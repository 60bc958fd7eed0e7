import BusServer
import CaptureCore
import LinuxIO
import Logging

/// SIGHUP
extension Coordinator {
    /// Reads the configuration again. A file that can't be read or is wrong changes nothing. Roles stay until the users
    /// and groups in the file have been looked up.
    func reload() {
        service.notify("RELOADING=1")
        do {
            let read = try StartUp.readConfiguration(configuration.options.configurationPath)
            try lookUpNames(read)
            configuration.current = read
            workers.launch = StartUp.launch(workers.launch.program, directory, hasGroup: group != nil, read)
            recorders.logLevel = read.logLevel
            librarians.use(places.current.library, isShared: places.isShared)
            quota.use(read.libraryQuota)
            connections.setLimits(perUser: read.connectionsPerUser, total: read.connections)
            workers.order = DeviceOrder(configured: read.order)
            rigs.setConfigured(read.rigs)
            // The handler's level, where it has one for all.
            var logger = logger
            if let level = Logger.Level(rawValue: read.logLevel) { logger.logLevel = level }
            logger.info("configuration read again")
            configuration.refusal = nil
            updater.discover()
        } catch {
            logger.error("the configuration was not read again", metadata: ["error": "\(error)"])
            configuration.refusal = .configurationRefused("\(error)")
            state.problemsChanged()
            service.notify("READY=1")
        }
    }

    // A name service may be on the network: nothing waits for it.
    private func lookUpNames(_ configuration: Configuration) throws(SystemError) {
        if lookUp == nil {
            lookUp = try BackgroundWork(
                loop, name: "names", work: { AuthorizationPolicy.resolved($0, owner: CurrentProcess.uid) },
                then: { [weak self] in self?.setPolicy($0.policy, unknown: $0.unknown) })
        }
        lookUp?.start(configuration)
    }

    private func setPolicy(_ policy: AuthorizationPolicy, unknown: [String]) {
        guard !lifecycle.isStopping else { return }
        permission.setPolicy(policy, unknown: unknown)
        connections.setUnbounded(policy.gateway)
        state.problemsChanged()
        service.notify("READY=1")
    }
}
