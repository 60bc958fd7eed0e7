import BusClient
import BusProtocol
import JSON

/// Names of devices, as they are typed.
enum Naming {
    /// Refuses what can't be a device's id with those that there are: the bus does so only for what could be one.
    static func check(_ device: String, _ client: Client, timeout: Duration) async throws {
        guard !DeviceID.isValid(device) else { return }
        let ids = try await client.devices(timeout: timeout).compactMap { $0["id"]?.string }
        throw Failure(status: ExitStatus.refused, description: Table.printable(refusal(device, ids)))
    }

    static func refusal(_ device: String, _ ids: [String]) -> String {
        let known = ids.isEmpty ? "there are no devices" : "there are \(ids.joined(separator: ", "))"
        let lower = device.lowercased()
        return ids.contains(lower)
            ? "invalidParams: '\(device)' is no device id. Did you mean '\(lower)'?"
            : "invalidParams: '\(device)' is no device id; \(known)."
    }
}
