import BusClient
import BusProtocol
import JSON

/// Checks device names that were typed.
enum DeviceArgumentCheck {
    /// Refuses a name that is not a valid device id, and lists the known ids. The bus lists them only for valid ids.
    static func check(_ device: String, _ client: Client, timeout: Duration) async throws {
        guard !DeviceID.isValid(device) else { return }
        let ids = try await client.devices(timeout: timeout).compactMap { $0["id"]?.string }
        throw Failure(status: ExitStatus.refused, description: Table.printable(refusal(device, ids)))
    }

    /// A rig, by its name, with the ids of those of its devices that are there.
    struct Rig {
        var name: String
        var devices: [String]
    }

    static func rigs(_ client: Client, timeout: Duration) async throws -> [Rig] {
        do throws(ClientError) {
            return try await client.rigs(timeout: timeout).map { rig in
                Rig(
                    name: rig["name"]?.string ?? "",
                    devices: rig["devices"]?.array?.compactMap { $0["id"]?.string } ?? [])
            }
        } catch {
            // An older bus.
            guard error.reason == .methodNotFound else { throw error }
            return []
        }
    }

    /// Why these names, of which none stands alone for a rig, can't be recorded; nil: all of them are devices.
    static func refusal(ofRecording names: [String], _ ids: [String], _ rigs: [Rig]) -> BusError? {
        for name in names where !ids.contains(name) {
            if rigs.contains(where: { $0.name == name }) {
                return BusError(
                    .invalidParams, "'\(name)' is a rig. Record it alone, without other names.")
            }
            let all = ids + rigs.map(\.name)
            let known = all.isEmpty ? "There are none." : "Known: \(all.joined(separator: ", "))."
            let hint = Spelling.nearest(name, all).map { " Did you mean '\($0)'?" } ?? ""
            return BusError(
                .deviceNotFound, "There is no device or rig '\(name)'. \(known)\(hint)", ["device": .string(name)])
        }
        return nil
    }

    static func refusal(_ device: String, _ ids: [String]) -> String {
        let known = ids.isEmpty ? "there are no devices" : "known ids: \(ids.joined(separator: ", "))"
        let lower = device.lowercased()
        return ids.contains(lower)
            ? "invalidParams: '\(device)' is not a device id. Did you mean '\(lower)'?"
            : "invalidParams: '\(device)' is not a device id; \(known)."
    }
}
