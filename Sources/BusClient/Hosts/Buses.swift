public import JSON

/// Several buses as one: cameras of several machines, each called `host/device`. The program chooses the names of the
/// hosts.
///
/// Errors name the bus (``BusesError``). For everything else use the client of one bus: `buses["rig"]`.
public final class Buses: Sendable {
    struct Member: Sendable {
        var host: String
        var client: Client
    }

    /// A device by its name here.
    struct Place: Sendable {
        /// `rig/cam0`.
        var name: String
        var member: Member
        /// Its id there.
        var device: String
    }

    /// In the order of the hosts' names.
    let members: [Member]

    /// - Parameter clients: by what their hosts are to be called: names without a slash.
    /// - Throws: ``BusesError/notAHost(_:)``.
    public init(_ clients: [String: Client]) throws(BusesError) {
        for host in clients.keys where host.isEmpty || host.utf8.contains(UInt8(ascii: "/")) { throw .notAHost(host) }
        // In the order of their Unicode scalars, like all clients: two clients that lock must not wait for one another
        // in a circle.
        members = clients.map { Member(host: $0.key, client: $0.value) }.sorted {
            $0.host.unicodeScalars.lexicographicallyPrecedes($1.host.unicodeScalars)
        }
    }

    /// What the buses are called, in their order.
    public var hosts: [String] { members.map(\.host) }

    /// The client of one; nil: none is called so.
    public subscript(host: String) -> Client? { members.first { $0.host == host }?.client }

    /// Ends all connections.
    public func close() async {
        for member in members { await member.client.close() }
    }

    /// All devices, as `device.list` describes them, by `host/device`.
    ///
    /// - Parameter timeout: for each bus's answer, here as below.
    public func devices(
        timeout: Duration = Client.defaultTimeout
    ) async throws(BusesError) -> [String: JSONValue] {
        var found: [String: JSONValue] = [:]
        for member in members {
            let devices: [JSONValue]
            do throws(ClientError) {
                devices = try await member.client.devices(timeout: timeout)
            } catch {
                throw .at(host: member.host, error)
            }
            for device in devices {
                if let id = device["id"]?.string { found["\(member.host)/\(id)"] = device }
            }
        }
        return found
    }

    /// How right each machine says that its clock is, by host.
    public func clocks(timeout: Duration = Client.defaultTimeout) async throws(BusesError) -> [String: HostClock] {
        var found: [String: HostClock] = [:]
        for member in members {
            do throws(ClientError) {
                found[member.host] = try await member.client.clock(timeout: timeout)
            } catch {
                throw .at(host: member.host, error)
            }
        }
        return found
    }

    /// Where these are, each once.
    func places(_ names: [String], least: Int = 1) throws(BusesError) -> [Place] {
        var found: [Place] = []
        for name in names where !found.contains(where: { $0.name == name }) {
            guard let slash = name.firstIndex(of: "/") else { throw .unknownName(name, hosts: hosts) }
            let host = String(name[..<slash])
            guard let member = members.first(where: { $0.host == host }) else {
                throw .unknownName(name, hosts: hosts)
            }
            found.append(Place(name: name, member: member, device: String(name[name.index(after: slash)...])))
        }
        guard found.count >= least else { throw .tooFewNames(least: least) }
        return found
    }
}
