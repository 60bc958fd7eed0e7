import BusProtocol
import BusServer
import ZeroMQ

/// The runtime directory of the bus, with the ZeroMQ context and loop that connect to it.
final class BusEndpoints {
    let context: Context
    let loop: Loop
    let directory: RuntimeDirectory
    private var lastLine: UInt64 = 0

    init(_ context: Context, _ loop: Loop, _ directory: RuntimeDirectory) {
        self.context = context
        self.loop = loop
        self.directory = directory
    }

    /// Another number for each connection.
    func nextLine() -> UInt64 {
        lastLine += 1
        return lastLine
    }
}
