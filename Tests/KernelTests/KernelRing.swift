import CameraBusTesting
import CaptureCore
import CaptureSources
import Foundation
import Testing

/// What the kernel ring's runner (`Tests/Kernel/run`) has set up, or what vivid devices the machine happens to have.
enum KernelRing {
    enum Topology: String {
        /// Three webcams, and a television card with a video output and a metadata node beside it; all single-planar.
        case single
        /// Two multi-planar webcams, and two sound cards: a loop of two substreams, and one with a mixer.
        case multi
        /// A USB controller without devices: the tests plug in what they need (``EmulatedCamera``).
        case usb

        /// How many cameras of vivid's there are.
        var cameraCount: Int {
            switch self {
            case .single: 4
            case .multi: 2
            case .usb: 0
            }
        }
    }

    /// What the runner promises; nil outside of the ring.
    static let topology = ProcessInfo.processInfo.environment["CAMERABUS_KERNEL_RING"].flatMap(Topology.init)

    static let identities = V4L2Discovery.cameras().filter { $0.driver == "vivid" }
    static var hasVivid: Bool { !identities.isEmpty }

    /// Takes vivid from its devices (`unbind`), or gives it to them again (`bind`): all of them are one platform
    /// device, and go and come together.
    static func drive(_ what: String) throws {
        try "vivid.0".write(
            toFile: "/sys/bus/platform/drivers/vivid/\(what)", atomically: false, encoding: .utf8)
    }

    /// Runs a test that takes the driver away. Nodes that somebody has open when it goes keep their numbers from those
    /// that come; the other tests know them by the numbers that they had.
    static func withoutTraces(_ test: () async throws -> Void) async throws {
        let result: Result<Void, any Error>
        do {
            try await test()
            result = .success(())
        } catch {
            result = .failure(error)
        }
        // It may have failed while the driver was away.
        try? drive("unbind")
        try? drive("bind")
        try await eventually(by: .after(seconds: 60)) {
            V4L2Discovery.cameras().filter { $0.driver == "vivid" } == identities
        }
        try result.get()
    }
}

/// The tests on vivid's devices: one after the other, since they share them.
@Suite(.serialized, .enabled(if: KernelRing.hasVivid, "no vivid device: the kernel ring (make test-kernel) has them"))
enum KernelTests {}

/// The tests on USB cameras, one after the other.
@Suite(.serialized, .enabled(if: KernelRing.topology == .usb, "the kernel ring (make test-kernel) has the controller"))
enum USBTests {}

/// The tests on sound cards, one after the other.
@Suite(
    .serialized, .enabled(if: KernelRing.topology == .multi, "the kernel ring (make test-kernel) has the sound cards"))
enum SoundCardTests {}

/// A ring without its devices must not pass for a machine without vivid.
@Test(.enabled(if: KernelRing.topology != nil))
func ringHasItsDevices() throws {
    let topology = try #require(KernelRing.topology)
    #expect(KernelRing.identities.count == topology.cameraCount)
}

/// A vivid camera, opened, with a picture that doesn't change from frame to frame; left as it was when the test ends.
final class TestCamera {
    let camera: V4L2Camera
    let description: DeviceDescription
    let node: String
    private let valuesBefore: [String: ControlValue]
    private let formatBefore: FormatSelection

    init(_ index: Int = 0) throws {
        let identity = try #require(KernelRing.identities.dropFirst(index).first)
        node = try #require(identity.node)
        camera = V4L2Camera(identity)
        description = try camera.open()
        valuesBefore = try camera.controlValues()
        formatBefore = try camera.activeFormat()
        try set("test_pattern", .integer(0))
        try set("osd_text_mode", .integer(2))
        try set("horizontal_movement", .integer(3))
        try set("vertical_movement", .integer(3))
    }

    deinit {
        try? camera.stopStreaming()
        _ = try? camera.setFormat(formatBefore)
        for control in (try? camera.controls()) ?? []
        where control.flags.isDisjoint(with: [.readOnly, .inactive, .dynamicArray]) {
            if let value = valuesBefore[control.name] { try? camera.setControl(control.name, to: value) }
        }
        camera.close()
    }

    func set(_ control: String, _ value: ControlValue) throws { try camera.setControl(control, to: value) }

    /// Runs v4l2-ctl on this camera.
    @discardableResult
    func v4l2ctl(_ arguments: String...) throws -> String { try KernelTests.v4l2ctl(["-d", node] + arguments) }

    func format(_ pixelFormat: String, _ width: Int, _ height: Int) throws -> FormatSelection {
        FormatSelection(
            pixelFormat: try #require(PixelFormat(pixelFormat)), dimensions: Dimensions(width: width, height: height))
    }

    /// Sets a format and the highest rate that vivid has at it.
    func use(_ pixelFormat: String, _ width: Int, _ height: Int) throws {
        let wanted = try format(pixelFormat, width, height)
        #expect(try camera.setFormat(wanted) == wanted)
        let row = try #require(
            description.formats.first { $0.pixelFormat == wanted.pixelFormat && $0.dimensions == wanted.dimensions })
        if let rate = row.frameRates.map(\.minFrameDuration).min() {
            #expect(try camera.setFrameDuration(rate) == rate)
        }
    }
}

extension KernelTests {
    /// Runs a test's steps; where one fails, what the bus has said until then is told too, since what fails here is
    /// rarely seen again.
    static func tellingLog(of bus: BusHarness, _ steps: () async throws -> Void) async throws {
        do {
            try await steps()
        } catch {
            Issue.record("\(error)\n\(bus.log.suffix(6000))")
            throw error
        }
    }

    /// Runs v4l2-ctl and answers what it prints, standard error after standard output.
    static func v4l2ctl(_ arguments: [String]) throws -> String { try run("/usr/bin/v4l2-ctl", arguments).output }

    /// Runs a program and answers what it prints, standard error after standard output, and its status.
    static func run(_ program: String, _ arguments: [String]) throws -> (output: String, status: Int32) {
        let process = Process()
        process.executableURL = URL(filePath: program)
        process.arguments = arguments
        let output = Pipe()
        let errors = Pipe()
        process.standardOutput = output
        process.standardError = errors
        try process.run()
        // Little comes on standard error: never as much as would fill the pipe while we read the other.
        let text = output.fileHandleForReading.readDataToEndOfFile()
        let complaints = errors.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return (String(decoding: text + complaints, as: UTF8.self), process.terminationStatus)
    }

    /// The next frame's slot, waited for until the deadline.
    static func nextFrame(_ stream: any FrameStream, seconds: Int32 = 20) throws -> FrameSlot {
        while true {
            if let slot = try stream.dequeue() { return slot }
            var descriptor = pollfd(fd: stream.descriptor, events: Int16(POLLIN), revents: 0)
            try #require(poll(&descriptor, 1, seconds * 1000) == 1, "no frame within \(seconds) s")
        }
    }

    /// Whether two pictures are the same. Their bytes in an `#expect` would be listed one by one when they differ,
    /// which takes hours.
    static func isSame(_ one: [UInt8], _ other: [UInt8]) -> Bool { one.withUnsafeBytes { isSame($0, other) } }

    /// As above, at once: an emulated processor takes longer for it byte by byte than a frame stays in its ring.
    static func isSame(_ one: UnsafeRawBufferPointer, _ other: [UInt8]) -> Bool {
        one.count == other.count && one.baseAddress.map { memcmp($0, other, other.count) == 0 } ?? true
    }

    /// The bytes of a frame, region after region.
    static func bytes(_ slot: FrameSlot) -> [UInt8] {
        zip(slot.regions, slot.bytesUsed).flatMap { region, used in Array(region.prefix(used)) }
    }
}
