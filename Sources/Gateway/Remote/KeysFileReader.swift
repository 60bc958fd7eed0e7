import BusProtocol
import Glibc
import LinuxIO
import Logging

/// Reads the keys file: the public keys that may connect.
enum KeysFileReader {
    private static let maximumBytes = 1 << 20

    /// The entries of the file. An invalid or missing file allows nobody, as it may revoke somebody.
    static func read(_ path: String, logger: Logger) -> RemoteUserStore.Reading {
        do {
            let bytes = try File.readTrusted(path, limit: maximumBytes)
            let keys = try RemoteUserList(parsing: String(decoding: bytes, as: UTF8.self))
            return RemoteUserStore.Reading(remoteUsers: keys.entries, isWhole: true)
        } catch let error as SystemError where error.code == ENOENT {
            logger.notice(
                "no keys are accepted: the keys file does not exist; create it with 'camerabus keys add'",
                metadata: ["file": "\(path)"])
        } catch {
            logger.error(
                "no keys are accepted: the keys file can't be read",
                metadata: ["file": "\(path)", "error": "\(reason(error))"])
        }
        return RemoteUserStore.Reading()
    }

    private static func reason(_ error: any Error) -> String {
        switch (error as? SystemError)?.code {
        case EPERM: "other users may write it; run chmod go-w, and make root or the gateway's user its owner"
        case ELOOP: "it is a link; name the file itself, because changes of a link's target are not noticed"
        default: "\(error)"
        }
    }
}
