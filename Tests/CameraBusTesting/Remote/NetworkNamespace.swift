import Glibc
import LinuxIO

/// Another machine, as far as the network goes: a network namespace with a wire to this one. Needs root and ip(8). Gone
/// at the end.
public final class NetworkNamespace {
    /// Why there can't be any; nil: there can.
    public static let obstacle: String? = {
        guard CurrentProcess.uid == 0 else { return "only root makes network namespaces" }
        guard (try? NetworkNamespace()) != nil else { return "network namespaces can't be made here (ip netns, veth)" }
        return nil
    }()

    public static var isPossible: Bool { obstacle == nil }

    public let name: String
    /// This machine's address on the wire, and the other's.
    public let here: String
    public let there: String
    /// This end of the wire.
    public let wire: String

    public init() throws {
        let mark = hexadecimal(randomBytes(3))
        name = "cbt-\(mark)"
        wire = "cbt\(mark)a"
        // Of the addresses for tests of networks, which nobody has (RFC 2544).
        let net = "198.\(18 + randomBytes(1)[0] % 2).\(randomBytes(1)[0])"
        (here, there) = ("\(net).1", "\(net).2")
        try Self.ip("netns", "add", name)
        do {
            try Self.ip("link", "add", wire, "type", "veth", "peer", "name", "eth0", "netns", name)
            try Self.ip("addr", "add", "\(here)/24", "dev", wire)
            try Self.ip("link", "set", wire, "up")
            for words in [
                ["addr", "add", "\(there)/24", "dev", "eth0"], ["link", "set", "eth0", "up"],
                ["link", "set", "lo", "up"],
            ] {
                try Self.ip(["-n", name] + words)
            }
        } catch {
            _ = try? Self.ip("netns", "delete", name)
            throw error
        }
    }

    deinit {
        _ = try? Self.ip("link", "delete", wire)
        _ = try? Self.ip("netns", "delete", name)
    }

    /// What `ip` is to be called with to run a program there.
    public func arguments(_ program: String, _ arguments: [String]) -> [String] {
        ["netns", "exec", name, Programs.path(program)] + arguments
    }

    /// Pulls the wire out: nobody is told, nothing comes any more.
    public func cut() throws { try Self.ip("link", "set", wire, "down") }

    private static func ip(_ words: String...) throws { try ip(words) }

    private static func ip(_ words: [String]) throws {
        let child = try ChildProcess(
            program: "ip", arguments: words, environment: ["PATH": "/usr/bin:/bin:/usr/sbin:/sbin"], searchesPath: true)
        guard waitUntilReadable(child.process.rawValue, by: .usual), child.reap() == .exited(0) else {
            throw TestingError("ip \(words.joined(separator: " ")) failed")
        }
    }
}
