import Glibc
import LinuxIO
import Testing
import ZeroMQ

@testable import Gateway

/// The gateway's own keys on the disk.
@Suite struct ServerKeysTests {
    @Test func `they are made with their folder, and are the same ever after`() throws {
        let folder = "/tmp/camerabus-keys-\(getpid())-\(UInt32.random(in: 0 ... .max))"
        let path = "\(folder)/server.key"
        defer { for each in [path, "\(folder)/server.pub", folder] { remove(each) } }
        let made = try ServerKeys.load(path)
        var status = stat()
        #expect(stat(path, &status) == 0 && status.st_mode & 0o777 == 0o600)
        #expect(stat(folder, &status) == 0 && status.st_mode & 0o777 == 0o700)
        #expect(try ServerKeys.load(path) == made)
        let open = String(decoding: try File.read("\(folder)/server.pub", limit: 100), as: UTF8.self)
        #expect(open == "public \(made.publicKey.text)\n")
        // One level is made, and what is missing beyond is told.
        let error = #expect(throws: GatewayError.self) { try ServerKeys.load("\(folder)/a/b/server.key") }
        #expect(error?.description.contains("\(folder)/a/b") == true)
    }
}
