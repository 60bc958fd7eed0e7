import Glibc
import LinuxIO

/// A device on an emulated USB port that says of itself that it is a camera, and no more: for what happens before any
/// driver has it.
///
/// It speaks USB/IP's URB protocol (Documentation/usb/usbip_protocol.rst) to the kernel's `vhci_hcd` over a socket
/// pair. Needs root and `modprobe vhci-hcd`. Unplugged when it ends.
final class USBCameraWithoutDriver {
    private let device: FileDescriptor
    private let thread: NamedThread

    private static let controller = "/sys/devices/platform/vhci_hcd.0"
    private static let strings = ["CameraBus", "Camera without driver", "NO-DRIVER-1"]

    /// - Parameter port: one of vhci's that is free, 0 to 7 (high speed).
    init(port: Int) throws(SystemError) {
        var ends: [Int32] = [-1, -1]
        try check("socketpair") {
            socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends)
        }
        device = FileDescriptor(owning: ends[0])
        let kernel = FileDescriptor(owning: ends[1])
        let descriptor = device.rawValue
        thread = try NamedThread(name: "usb-camera") { Self.serve(descriptor) }
        // port, socket, device id, speed (3: high)
        let text = Array("\(port) \(kernel.rawValue) \(65538 + port) 3".utf8)
        let attach = try FileDescriptor(opening: "\(Self.controller)/attach", O_WRONLY)
        try check("write", "attach") { write(attach.rawValue, text, text.count) }
    }

    deinit {
        UnixSocket.shutDown(device.rawValue)
        thread.join()
    }

    // MARK: URBs

    private static func serve(_ descriptor: Int32) {
        while let head = read(48, from: descriptor) {
            let number = head[4..<8]
            let isIn = head[15] == 1
            let endpoint = word(head, 16)
            switch word(head, 0) {
            case 1:
                let length = Int(word(head, 24))
                if !isIn, length > 0, read(length, from: descriptor) == nil { return }
                let answer = endpoint == 0 ? control(Array(head[40..<48])) : nil
                let data = Array((answer ?? []).prefix(length))
                let status: Int32 = answer == nil ? -EPIPE : 0
                let fields = words([3]) + number + words([0, 0, 0, UInt32(bitPattern: status)])
                let count = isIn ? UInt32(data.count) : UInt32(length)
                send(fields + words([count, 0, 0, 0, 0, 0]) + (isIn ? data : []), to: descriptor)
            case 2:
                // Everything was answered at once, so nothing is there to be given up.
                send(words([4]) + number + [UInt8](repeating: 0, count: 40), to: descriptor)
            default: return
            }
        }
    }

    /// The answer to a request of the standard; nil: a stall.
    private static func control(_ setup: [UInt8]) -> [UInt8]? {
        guard setup[0] & 0x60 == 0 else { return nil }
        switch setup[1] {
        case 0: return [0, 0]
        case 6: return descriptor(kind: setup[3], index: Int(setup[2]))
        case 8: return [1]
        default: return []
        }
    }

    private static func descriptor(kind: UInt8, index: Int) -> [UInt8]? {
        // Interface class 14: video; subclass 1: control.
        let interface: [UInt8] = [9, 4, 0, 0, 0, 14, 1, 0, 0]
        switch kind {
        // USB 2.0, class by interface, 1209:0002.
        case 1: return [18, 1, 0, 2, 0xEF, 2, 1, 64, 0x09, 0x12, 2, 0, 0, 1, 1, 2, 3, 1]
        case 2: return [9, 2, 18, 0, 1, 1, 0, 0x80, 50] + interface
        case 3:
            guard index > 0 else { return [4, 3, 9, 4] }
            guard index <= strings.count else { return nil }
            let text = strings[index - 1].utf16.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }
            return [UInt8(2 + text.count), 3] + text
        case 6: return [10, 6, 0, 2, 0xEF, 2, 1, 64, 1, 0]
        default: return nil
        }
    }

    // MARK: Bytes

    private static func word(_ bytes: [UInt8], _ offset: Int) -> UInt32 {
        bytes[offset..<(offset + 4)].reduce(0) { $0 << 8 | UInt32($1) }
    }

    private static func words(_ values: [UInt32]) -> [UInt8] {
        values.flatMap { value in (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) } }
    }

    private static func read(_ count: Int, from descriptor: Int32) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        var filled = 0
        while filled < count {
            let part = bytes.withUnsafeMutableBytes {
                Glibc.read(descriptor, $0.baseAddress?.advanced(by: filled), count - filled)
            }
            guard part > 0 else { return nil }
            filled += part
        }
        return bytes
    }

    private static func send(_ bytes: [UInt8], to descriptor: Int32) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }
}
