import BusClient
import BusProtocol
import Doctor
import JSON
import LinuxIO

/// Reads the bus's report for the doctor, if a bus runs.
struct BusReportReader {
    private let options: GlobalOptions
    private let candidates: [RuntimeDirectory]
    private let problem: String?
    /// The address as it was given, where the bus is on another machine.
    private let address: String?

    init(_ options: GlobalOptions) {
        self.options = options
        let named = options.runtimeDir.flatMap { $0.isEmpty ? nil : $0 }
        let text = named ?? CurrentProcess.environment("CAMERABUS_RUNTIME_DIR") ?? ""
        guard !text.hasPrefix("tcp://") else {
            address = text
            (candidates, problem) = ([], nil)
            return
        }
        address = nil
        do throws(RuntimeDirectory.PathError) {
            candidates = try RuntimeDirectory.clientCandidates(
                flag: options.runtimeDir, environment: CurrentProcess.environment(), uid: CurrentProcess.uid)
            problem = nil
        } catch {
            (candidates, problem) = ([], error.description)
        }
    }

    /// - Returns: what came of it, the runtime directories in question, and of a bus on another machine the way there.
    func hold() async -> (report: BusReport, directories: [String], remote: RemoteFacts?) {
        if let address {
            let (report, remote) = await RemoteReportReader(options, address).hold(ask)
            return (report, [], remote)
        }
        let (report, directories) = await holdHere()
        return (report, directories, nil)
    }

    private func holdHere() async -> (report: BusReport, directories: [String]) {
        if let problem { return (BusReport(state: .unusable(problem)), []) }
        let client: Client
        do throws(ClientError) {
            client = try await options.connect()
        } catch {
            var report = BusReport()
            if case .noBus = error { return (report, candidates.map(\.path)) }
            report.state = .unusable(error.description)
            let place = candidates.first { UnixSocket.isLive($0.commandSocket) }
            report.directory = place?.path
            report.pid = place.flatMap { UnixSocket.listener(at: $0.commandSocket)?.pid }
            return (report, candidates.map(\.path))
        }
        return (await ask(client), [client.place.name])
    }

    private func ask(_ client: Client) async -> BusReport {
        var report = BusReport(state: .answered)
        report.directory = client.place.name
        report.version = client.greeting.version
        report.pid = client.directory.flatMap { UnixSocket.listener(at: $0.commandSocket)?.pid }
        do throws(ClientError) {
            report.devices = try await client.devices(timeout: options.timeout.duration)
        } catch {
            report.state = .unusable(error.description)
            return report
        }
        if client.greeting.features.contains(Feature.rigs.rawValue) {
            // The other findings do not need the rigs.
            report.rigs = (try? await client.rigs(timeout: options.timeout.duration)) ?? []
        }
        if client.greeting.features.contains(Feature.permission.rawValue) {
            report.videoPermission = client.greeting.authorization["video"]
            let requests = try? await client.authorizations(timeout: options.timeout.duration)["requests"]?.array
            report.waitingRequests = requests?.count ?? 0
        }
        let bus = try? await client.call("bus.snapshot", ["prefix": "state/bus/"], timeout: options.timeout.duration)
        let state = bus?["state"]?["state/bus/"]
        report.pressure = state?["systemPressureState"]
        report.pressureSources = (state?["systemPressureSources"]?.object ?? [:]).compactMapValues(\.string)
        guard client.greeting.features.contains(Feature.who.rawValue) else { return report }
        for device in report.devices {
            guard let id = device["id"], !(device["node"]?.isNull ?? true) else { continue }
            // An error for one device does not stop the others. The machine itself is checked in any case.
            let usage = try? await client.call("device.who", ["device": id], timeout: options.timeout.duration)
            if let usage { report.usages.append(usage) }
        }
        return report
    }
}
