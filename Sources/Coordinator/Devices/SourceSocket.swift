import BusProtocol
import CaptureCore
import LinuxIO
import Sodium

extension RuntimeDirectory {
    /// Where a client sends the frames of its device to: the same for as long as there is the source, whatever its
    /// device is called meanwhile, and short enough for a socket's address.
    func sourceSocket(of source: ClientSource) -> String {
        sourceSocket(hexadecimal(Array(sha256(Array(source.uniqueID.utf8)).prefix(8))))
    }
}
