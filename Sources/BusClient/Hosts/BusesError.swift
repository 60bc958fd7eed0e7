/// An error of one of several buses.
public enum BusesError: Error, Hashable, Sendable {
    /// With the bus of that name.
    case at(host: String, ClientError)
    /// That is no name for a host.
    case notAHost(String)
    /// That is not `host/device` of a host that there is.
    case unknownName(String, hosts: [String])
    /// So many devices have to be named.
    case tooFewNames(least: Int)
    /// The task that waited was cancelled.
    case cancelled

    /// On which bus it was; nil: on none.
    public var host: String? {
        guard case .at(let host, _) = self else { return nil }
        return host
    }
}

extension BusesError: CustomStringConvertible {
    /// One sentence or two that tell a person what to do.
    public var description: String {
        switch self {
        case .at(let host, let error): "\(host): \(error)"
        case .notAHost(let name): "The name of a host has no slash: '\(name)'."
        case .unknownName(let name, let hosts):
            "'\(name)' is not HOST/DEVICE of \(hosts.isEmpty ? "any host" : hosts.joined(separator: ", "))."
        case .tooFewNames(let least):
            least > 1
                ? "Name at least \(least) devices, each as HOST/DEVICE."
                : "Name a device: HOST/DEVICE."
        case .cancelled: "Cancelled."
        }
    }
}
