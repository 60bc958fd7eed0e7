import BusProtocol
import LinuxIO
import ZeroMQ

/// Tests at start that libzmq tells who sent a message. It is an undocumented property, on which all identity here
/// rests.
public enum PeerAddressTest {
    /// - Parameter path: where a socket may be made for a moment, in a folder of our own.
    /// - Throws: ``ServerError/peerAddressMissing(libraryVersion:seen:)`` when it doesn't, or tells something else than
    ///   the truth.
    public static func run(at path: String) throws(ServerError) {
        defer { File.remove(path) }
        let seen: String?
        do {
            seen = try observedAddress(at: path)
        } catch let error as SystemError {
            throw .system(error)
        } catch let error as ZeroMQError {
            throw .zeroMQ(error)
        } catch {
            seen = nil
        }
        try judge(seen)
    }

    /// - Parameter seen: the property of a message that this process has sent itself.
    static func judge(_ seen: String?) throws(ServerError) {
        guard let seen, let peer = PeerAddress(zmqPeerAddress: seen), peer.uid == CurrentProcess.uid,
            peer.gid == CurrentProcess.gid, peer.pid == CurrentProcess.pid
        else { throw .peerAddressMissing(libraryVersion: libraryVersion(), seen: seen) }
    }

    private static func observedAddress(at path: String) throws -> String? {
        let context = try Context()
        let server = try Socket(context, .router)
        let descriptor = try UnixSocket.listen(at: path, mode: 0o600)
        try server.set(.useDescriptor, Int(descriptor.rawValue))
        try server.bind("ipc://\(path)")
        _ = descriptor.release()
        let client = try Socket(context, .dealer)
        try client.connect("ipc://\(path)")
        try client.send([0x3F])
        let set = try PollSet([.socket(server)])
        try set.wait(timeout: 5000)
        return try server.receive()?.last?.property("Peer-Address")
    }
}
