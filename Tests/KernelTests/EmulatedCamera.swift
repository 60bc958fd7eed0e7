import CameraBusTesting
import Foundation
import LinuxIO
import Testing

/// A USB camera on a port of the kernel's virtual host controller (`Tests/Kernel/usb_camera`), with uvcvideo as its
/// driver.
///
/// Unplugged when it ends, or when nobody holds it any more.
final class EmulatedCamera {
    let port: Int
    let serial: String
    private let process = Process()
    private let commands = Pipe()
    private let answers = Pipe()
    private var unread: [UInt8] = []

    private static let program = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "Kernel/usb_camera").path

    /// Plugs it in. The driver takes a moment to have it.
    ///
    /// - Parameters:
    ///   - port: 0 to 7, one that is free.
    ///   - serial: none if empty.
    ///   - stalls: so many requests of each control are stalled, from the driver's first on.
    init(port: Int, serial: String = "", stalls: Int = 0) throws {
        (self.port, self.serial) = (port, serial)
        process.executableURL = URL(filePath: "/usr/bin/python3")
        process.arguments = [Self.program, "--port", "\(port)", "--serial", serial, "--stall-all", "\(stalls)"]
        process.standardInput = commands
        process.standardOutput = answers
        try process.run()
        try #require(try line() == "ok plugged")
    }

    deinit {
        if process.isRunning { unplug() }
    }

    /// Tells it what to do; the commands are those of its help.
    ///
    /// - Returns: what it answers.
    @discardableResult
    func command(_ text: String) throws -> String {
        try commands.fileHandleForWriting.write(contentsOf: Data("\(text)\n".utf8))
        let answer = try line()
        try #require(answer.hasPrefix("ok"), "\(text): \(answer)")
        return String(answer.dropFirst(3))
    }

    func unplug() {
        // The threads of tests have other signals blocked, and what they start inherits that.
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    private func line() throws -> String {
        while true {
            if let end = unread.firstIndex(of: UInt8(ascii: "\n")) {
                defer { unread.removeSubrange(...end) }
                return String(decoding: unread[..<end], as: UTF8.self)
            }
            var descriptor = pollfd(
                fd: answers.fileHandleForReading.fileDescriptor, events: Int16(POLLIN), revents: 0)
            try #require(poll(&descriptor, 1, 60_000) == 1, "the emulated camera doesn't answer")
            let part = answers.fileHandleForReading.availableData
            try #require(!part.isEmpty, "the emulated camera has ended")
            unread += part
        }
    }
}
