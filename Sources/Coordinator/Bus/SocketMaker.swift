import BusProtocol
import BusServer
import LinuxIO
import ZeroMQ

/// Opens the coordinator's sockets.
struct SocketMaker {
    private let context: Context
    private let directory: RuntimeDirectory
    private let group: UInt32?
    private let inherited: InheritedSockets

    init(_ context: Context, _ directory: RuntimeDirectory, _ group: UInt32?, _ inherited: InheritedSockets) {
        self.context = context
        self.directory = directory
        self.group = group
        self.inherited = inherited
    }

    private var mode: UInt32 { group == nil ? 0o600 : 0o660 }

    /// Mode and group of the rigs' sockets.
    var door: MatcherHandle.Door { .init(mode: mode, group: group) }

    /// A socket for processes that the coordinator starts.
    func internalServer(_ path: String, domain: String) throws -> ServerSocket {
        try ServerSocket(
            context,
            .init(
                kind: .router, path: path, mode: 0o600, sendHighWaterMark: 1000, receiveHighWaterMark: 1000,
                maximumMessageBytes: BusLimits.maxPhotoReplyBytes, boundsMessages: false, authenticationDomain: domain))
    }

    /// `events.sock`
    func eventServer() throws -> ServerSocket {
        try ServerSocket(
            context,
            .init(
                kind: .extendedPublish, path: directory.eventsSocket, mode: mode, group: group,
                sendHighWaterMark: 1000, receiveHighWaterMark: ServerSocket.waitingSubscriptions,
                maximumMessageBytes: 1024,
                authenticationDomain: "events", welcome: Array("welcome/".utf8)), inherited: inherited)
    }

    /// `command.sock`
    func commandServer() throws -> ServerSocket {
        try ServerSocket(
            context,
            .init(
                kind: .router, path: directory.commandSocket, mode: mode, group: group, sendHighWaterMark: 16,
                receiveHighWaterMark: 16, maximumMessageBytes: BusLimits.maxMessageBytes,
                authenticationDomain: "command"), inherited: inherited)
    }
}
