import ArgumentParser
import BusClient
import JSON
import LinuxIO

struct WhoCommand: BusCommand {
    static let configuration = CommandConfiguration(
        commandName: "who", abstract: "Shows the users of a device, including programs outside the bus.",
        discussion: """
            WHAT is one of: locked (this client may configure the device), waits (this client waits for the lock), \
            streams (a client and the renditions that it subscribes to, at most 16 per process), foreign (a program \
            outside the bus has opened the device node), free.

            Without DEVICE all devices are shown. A node is allowed instead of an id. The command looks for the node \
            on the bus; without a bus it looks only in /proc.

            Only root (CAP_SYS_PTRACE with CAP_DAC_READ_SEARCH) can see what other users' programs have open. If \
            neither the bus nor you can see that, a line says so; then 'sudo camerabus who' shows the rest.

            With --json: {"devices": […]}, each as device.who returns it.

            EXAMPLES:
              camerabus who cam0
              camerabus who /dev/video0
              camerabus who --json | jq -r '.devices[].foreign[].pid'
            """)

    @OptionGroup var options: GlobalOptions

    @Argument(
        help: "The device's id ('camerabus devices' lists the ids) or its node (default: all).",
        completion: deviceCompletion)
    var device: String?

    func run() async throws {
        let client: Client
        do throws(ClientError) {
            client = try await options.connect()
        } catch {
            guard case .noBus = error, isNode || device == nil else { throw error }
            let usages = ForeignHolders.usages(nodes: try nodes())
            // There is neither a bus nor a camera: the missing bus is the error.
            if usages.isEmpty { throw error }
            Output.note("No bus runs here. This is the information from /proc.")
            return try show(usages)
        }
        try await run(client)
    }

    func run(_ client: Client) async throws {
        let devices = try await client.devices(timeout: timeout)
        var usages: [JSONValue] = []
        for device in devices where isWanted(device) {
            guard let id = device["id"]?.string else { continue }
            let usage = try await client.call("device.who", ["device": .string(id)], timeout: timeout)
            usages.append(ForeignHolders.completed(usage, worker: device["worker"]?["pid"]?.integer))
        }
        if usages.isEmpty, let device {
            // A node may exist without being on the bus. The bus refuses any other name.
            guard isNode else {
                _ = try await client.device(device, timeout: timeout)
                return
            }
            usages = ForeignHolders.usages(nodes: try nodes())
        }
        try show(usages)
    }

    private var isNode: Bool { device?.hasPrefix("/") == true }

    private func isWanted(_ candidate: JSONValue) -> Bool {
        guard let device else { return true }
        guard isNode else { return candidate["id"]?.string == device }
        return candidate["node"]?.string.map { DeviceNode.isSame($0, device) } ?? false
    }

    /// The node that is meant, or all of the machine's.
    private func nodes() throws -> [String] {
        guard let device else { return DeviceNode.videoNodes() }
        guard DeviceNode.exists(device) else {
            throw Failure(status: ExitStatus.refused, description: "\(device) is not a device node.")
        }
        return [device]
    }

    private func show(_ usages: [JSONValue]) throws {
        if options.json {
            try Output.json(["devices": .array(usages)])
        } else if usages.isEmpty {
            Output.note("There are no devices.")
        } else {
            try Self.table(usages).print()
        }
        if usages.contains(where: { $0["complete"] != true }) {
            Output.note(
                CurrentProcess.uid == 0
                    ? "Some processes are not visible here, not even to root. One of them may have a device open."
                    : "Other users' processes are not visible. 'sudo camerabus who' shows whether one of them has a "
                        + "device open."
            )
        }
    }

    static func table(_ usages: [JSONValue]) -> Table {
        var table = Table("DEVICE", "WHAT", "WHO", "DETAILS")
        for usage in usages {
            let name = ValueText.plain(usage["device"].flatMap { $0.isNull ? nil : $0 } ?? usage["node"])
            let rows = rows(usage)
            if rows.isEmpty { table.add(name, usage["complete"] == true ? "free" : "free, it seems") }
            for row in rows { table.add(name, row.what, row.who, row.details) }
        }
        return table
    }

    private static func rows(_ usage: JSONValue) -> [(what: String, who: String, details: String)] {
        var rows: [(what: String, who: String, details: String)] = []
        if let lock = usage["lock"], !lock.isNull {
            let note = lock["note"]?.string.map { ": \($0)" } ?? ""
            rows.append(("locked", ValueText.holder(lock["holder"]), "for \(ValueText.age(lock["since"]))\(note)"))
        }
        for waiter in usage["waiters"]?.array ?? [] {
            let note = waiter["note"]?.string ?? "for the lock"
            rows.append(("waits", ValueText.holder(waiter["holder"]), note))
        }
        for subscriber in usage["subscribers"]?.array ?? [] {
            let renditions = subscriber["renditions"]?.array?.compactMap(\.string) ?? []
            // Only the gateway knows the final receivers.
            let whose = subscriber["name"] == "camerabus-gateway" ? ", for web pages and clients on other machines" : ""
            rows.append(("streams", ValueText.holder(subscriber) + whose, renditions.joined(separator: ", ")))
        }
        for process in usage["foreign"]?.array ?? [] {
            rows.append(("foreign", ValueText.holder(process), "has \(ValueText.plain(usage["node"])) open"))
        }
        return rows
    }
}
