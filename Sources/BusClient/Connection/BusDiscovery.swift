import BusProtocol
import Glibc
import LinuxIO

/// Finds the bus as the protocol says: the named directory, else the first usual one with a live socket.
enum BusDiscovery {
    /// A bus on another machine, where one is named; else as ``find(flag:environment:uid:)``.
    static func place(flag: String?, environment: [String: String]) throws(ClientError) -> BusPlace {
        let named = flag.flatMap { $0.isEmpty ? nil : $0 } ?? environment["CAMERABUS_RUNTIME_DIR"] ?? ""
        guard named.hasPrefix("tcp://") else { return .local(try find(flag: flag, environment: environment)) }
        guard let server = environment["CAMERABUS_SERVER_KEY"], let own = environment["CAMERABUS_KEY"] else {
            throw .invalidRuntimeDirectory(
                "To connect to \(named), set $CAMERABUS_SERVER_KEY to the gateway's public key, and $CAMERABUS_KEY to "
                    + "the file "
                    + "with your own keys.")
        }
        return .remote(try RemoteBus(named, serverKey: server, keyFile: own))
    }

    static func find(
        flag: String?, environment: [String: String], uid: UInt32 = CurrentProcess.uid
    ) throws(ClientError) -> RuntimeDirectory {
        let candidates: [RuntimeDirectory]
        do {
            candidates = try RuntimeDirectory.clientCandidates(flag: flag, environment: environment, uid: uid)
        } catch {
            throw .invalidRuntimeDirectory(error.description)
        }
        var places: [ClientError.Place] = []
        for candidate in candidates {
            let why: String
            if candidates.count > 1, candidate.path == "/tmp/camerabus-\(uid)", !isOurs(candidate.path, uid) {
                // Anybody may make a directory of that name there, with a bus of their own in it.
                why = exists(candidate.path) ? "belongs to another user" : "no such directory"
            } else if UnixSocket.isLive(candidate.commandSocket) {
                return candidate
            } else {
                why = absence(candidate)
            }
            places.append(ClientError.Place(directory: candidate.path, why: why))
        }
        throw .noBus(lookedAt: places)
    }

    /// Why nobody answers in that directory, in a few words.
    static func absence(_ directory: RuntimeDirectory) -> String {
        if access(directory.commandSocket, W_OK) == 0 { return "no process answers at its socket" }
        switch errno {
        case EACCES: return "no permission: are you in the group camerabus?"
        case ENOENT where exists(directory.path): return "no bus in it"
        default: return "no such directory"
        }
    }

    private static func isOurs(_ path: String, _ uid: UInt32) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR && status.st_uid == uid
    }

    private static func exists(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0
    }
}
