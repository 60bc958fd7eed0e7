import BusProtocol
import Glibc
import LinuxIO
import ZeroMQ

/// The gateway's own keys: made once. Clients verify the gateway by them.
enum ServerKeys {
    /// The keys in the file. Without a file it makes new ones and writes them there, and the public one into a second
    /// file that everybody can read.
    static func load(_ path: String) throws(GatewayError) -> CurveKeyPair {
        let text: String
        do throws(SystemError) {
            text = String(decoding: try File.readOwn(path, limit: 1 << 16), as: UTF8.self)
        } catch {
            guard error.isAbsent else { throw GatewayError(description: "the gateway's keys: \(error)") }
            return try make(path)
        }
        let found = KeyFile.keys(in: text)
        guard let open = found.publicKey.flatMap({ CurveKey($0) }),
            let secret = found.secretKey.flatMap({ CurveKey($0) })
        else {
            throw GatewayError(
                description: "\(path) contains no pair of keys; move it away, and the gateway makes new ones")
        }
        return CurveKeyPair(publicKey: open, secretKey: secret)
    }

    // Of who starts it by hand there may be no folder for it yet.
    private static func makeFolder(of path: String) throws(SystemError) {
        let folder = String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)])
        guard !folder.isEmpty, mkdir(folder, 0o700) != 0, errno != EEXIST else { return }
        throw SystemError(code: errno, operation: "mkdir", subject: folder)
    }

    private static func make(_ path: String) throws(GatewayError) -> CurveKeyPair {
        do {
            try makeFolder(of: path)
            let pair = try CurveKeyPair.make()
            let (open, secret) = (pair.publicKey.text, pair.secretKey.text)
            let text = KeyFile.text(publicKey: open, secretKey: secret, name: "the gateway")
            try File.replace(path, with: Array(text.utf8), mode: 0o600)
            let stem = path.hasSuffix(".key") ? String(path.dropLast(4)) : path
            try File.replace("\(stem).pub", with: Array("public \(open)\n".utf8), mode: 0o644)
            return pair
        } catch {
            throw GatewayError(description: "the gateway's keys: \(error)")
        }
    }
}
