import BusProtocol
import Glibc
import LinuxIO
import Logging

/// The file of keys that are let in.
enum KeysFileReader {
    private static let maximumBytes = 1 << 20

    /// What it says. One that is wrong or not there lets nobody in, as it may be about somebody who is to be kept out.
    static func read(_ path: String, logger: Logger) -> RemoteUserStore.Reading {
        do {
            let bytes = try File.readTrusted(path, limit: maximumBytes)
            let keys = try RemoteUserList(parsing: String(decoding: bytes, as: UTF8.self))
            return RemoteUserStore.Reading(remoteUsers: keys.entries, isWhole: true)
        } catch let error as SystemError where error.code == ENOENT {
            logger.notice(
                "nobody is let in: there is no file of keys; 'camerabus keys add' makes it",
                metadata: ["file": "\(path)"])
        } catch {
            logger.error(
                "nobody is let in: the file of keys can't be read",
                metadata: ["file": "\(path)", "error": "\(reason(error))"])
        }
        return RemoteUserStore.Reading()
    }

    private static func reason(_ error: any Error) -> String {
        switch (error as? SystemError)?.code {
        case EPERM: "others could write it; chmod go-w, and its owner has to be root or the gateway's user"
        case ELOOP: "it is a link; name the file itself, as what the link leads to may change unseen"
        default: "\(error)"
        }
    }
}
