import CV4L2
import CameraBusTesting
import CaptureCore
import CaptureSources
import Glibc
import Testing
import Video4Linux

/// Whose memory a stream's frames are written to, with drivers that take the program's and drivers that don't.
@Suite struct V4L2MemoryTests {
    let device = V4L2ScriptedDevice()
    let camera: V4L2Camera
    let driver = Driver()

    /// What the scripted driver does, and was told.
    final class Driver {
        /// 0, or the error that a request for the program's memory gets.
        var requestError: Int32 = 0
        var queueError: Int32 = 0
        var startError: Int32 = 0
        var freeError: Int32 = 0
        var buffersGiven: UInt32?
        var sizeImage: UInt32 = 640
        /// From the first request for buffers on.
        var settledSizeImage: UInt32?
        var isMultiplanar = false

        var memory: UInt32 = 0
        var count: UInt32 = 0
        var isStreaming = false
        /// The buffers that it has, and where each lies.
        var queued: [(index: Int, address: UInt, length: UInt32)] = []
        var log: [String] = []
    }

    init() throws {
        let (device, driver) = (device, driver)
        camera = V4L2Camera(
            DeviceIdentity(
                uniqueID: "scripted", localizedName: "Scripted", type: .external, position: .unspecified,
                node: device.path, driver: "scripted", bus: "scripted:0")
        ) { _ throws(V4L2Error) in device }
        device.on(.queryCapability) { (answer: inout v4l2_capability) in
            withUnsafeMutableBytes(of: &answer.driver) { $0.copyBytes(from: "scripted".utf8) }
            withUnsafeMutableBytes(of: &answer.bus_info) { $0.copyBytes(from: "scripted:0".utf8) }
            let capture = driver.isMultiplanar ? V4L2_CAP_VIDEO_CAPTURE_MPLANE : V4L2_CAP_VIDEO_CAPTURE
            answer.capabilities = UInt32(bitPattern: capture | V4L2_CAP_STREAMING)
            return 0
        }
        device.on(.getFormat) { (answer: inout v4l2_format) in
            if driver.isMultiplanar {
                answer.fmt.pix_mp.width = 32
                answer.fmt.pix_mp.height = 20
                answer.fmt.pix_mp.pixelformat = fourCC("GREY")
                answer.fmt.pix_mp.num_planes = 1
                answer.fmt.pix_mp.plane_fmt.0 = v4l2_plane_pix_format()
                answer.fmt.pix_mp.plane_fmt.0.bytesperline = 32
                answer.fmt.pix_mp.plane_fmt.0.sizeimage = driver.sizeImage
            } else {
                answer.fmt.pix.width = 32
                answer.fmt.pix.height = 20
                answer.fmt.pix.pixelformat = fourCC("GREY")
                answer.fmt.pix.bytesperline = 32
                answer.fmt.pix.sizeimage = driver.sizeImage
            }
            return 0
        }
        device.on(.requestBuffers) { (answer: inout v4l2_requestbuffers) in
            let memory = answer.memory == V4L2_MEMORY_USERPTR.rawValue ? "userptr" : "mmap"
            driver.log.append("REQBUFS \(memory) \(answer.count)")
            if answer.count == 0 {
                if driver.freeError != 0 { return driver.freeError }
                driver.queued = []
            } else {
                if memory == "userptr", driver.requestError != 0 { return driver.requestError }
                if memory == "userptr", let given = driver.buffersGiven { answer.count = given }
            }
            driver.memory = answer.memory
            driver.count = answer.count
            driver.sizeImage = driver.settledSizeImage ?? driver.sizeImage
            return 0
        }
        device.on(.queryBuffer) { (answer: inout v4l2_buffer) in
            if driver.isMultiplanar {
                answer.length = 1
                answer.m.planes[0].length = 4096
            } else {
                answer.length = 4096
            }
            answer.flags = UInt32(V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC)
            return 0
        }
        device.on(.queueBuffer) { (answer: inout v4l2_buffer) in
            guard answer.memory == driver.memory, answer.index < driver.count else { return EINVAL }
            if answer.memory == V4L2_MEMORY_USERPTR.rawValue {
                if driver.queueError != 0 { return driver.queueError }
                guard answer.length >= driver.sizeImage else { return EINVAL }
            }
            driver.queued.append((Int(answer.index), answer.m.userptr, answer.length))
            return 0
        }
        device.on(.streamOn) { (_: inout CInt) in
            if driver.memory == V4L2_MEMORY_USERPTR.rawValue, driver.startError != 0 { return driver.startError }
            driver.isStreaming = true
            driver.log.append("STREAMON")
            return 0
        }
        device.on(.streamOff) { (_: inout CInt) in
            driver.isStreaming = false
            driver.log.append("STREAMOFF")
            return driver.freeError
        }
        device.on(.dequeueBuffer) { (answer: inout v4l2_buffer) in
            guard driver.isStreaming else { return EINVAL }
            guard !driver.queued.isEmpty else { return EAGAIN }
            let (index, _, _) = driver.queued.removeFirst()
            answer.index = UInt32(index)
            answer.bytesused = 640
            if driver.isMultiplanar { answer.m.planes[0].bytesused = 640 }
            answer.flags = UInt32(V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC)
            answer.timestamp.tv_sec = 5
            return 0
        }
    }

    /// What was allocated, and for how long it is there.
    private final class Allocations {
        var all: [(layout: FrameLayout, bytes: Int)] = []
        weak var last: PrivateSlots?

        func make(_ layout: FrameLayout, _ bytes: Int, slots: Int = 12) throws(SourceError) -> any SlotMemory {
            let memory = try PrivateSlots(slots, bytes: bytes, limit: 4)
            all.append((layout, bytes))
            last = memory
            return memory
        }
    }

    @Test func driverWritesIntoTheSlots() throws {
        _ = try camera.open()
        let allocations = Allocations()
        let stream = try camera.startStreaming { layout, bytes throws(SourceError) in
            try allocations.make(layout, bytes)
        }
        #expect(stream.memory == .userptr)
        #expect(driver.log == ["REQBUFS userptr 12", "STREAMON"])
        #expect(allocations.all.map(\.bytes) == [640])
        #expect(device.mappings.isEmpty)
        // Four are queued, each in the memory of the slot with its number; a fifth when it is given.
        let addresses = stream.slots.map { UInt(bitPattern: $0.regions[0].baseAddress) }
        #expect(driver.queued.map(\.index) == [0, 1, 2, 3])
        #expect(driver.queued.map(\.address) == Array(addresses.prefix(4)))
        #expect(driver.queued.allSatisfy { $0.length == 4096 })
        let slot = try #require(try stream.dequeue())
        #expect(slot.index == 0 && slot.bytesUsed == [640] && slot.monotonicTime == 5_000_000_000)
        try stream.enqueue(stream.slots[7])
        #expect(driver.queued.last?.index == 7 && driver.queued.last?.address == addresses[7])
        try camera.stopStreaming()
        #expect(driver.log.suffix(2) == ["STREAMOFF", "REQBUFS userptr 0"])
    }

    /// Each refusal of the program's memory leads to the driver's own, and one copy.
    @Test(arguments: ["request", "queue", "start", "fewBuffers", "noSize", "multiplanar"])
    func fallsBackToACopy(_ refusal: String) throws {
        switch refusal {
        case "request": driver.requestError = EINVAL
        case "queue": driver.queueError = EFAULT
        case "start": driver.startError = EINVAL
        case "fewBuffers": driver.buffersGiven = 8
        case "noSize": driver.sizeImage = 0
        default: driver.isMultiplanar = true
        }
        _ = try camera.open()
        let allocations = Allocations()
        let stream = try camera.startStreaming { layout, bytes throws(SourceError) in
            try allocations.make(layout, bytes)
        }
        #expect(stream.memory == .mmap)
        #expect(driver.memory == V4L2_MEMORY_MMAP.rawValue && driver.isStreaming)
        if driver.log.contains("REQBUFS userptr 12"), refusal != "request" {
            #expect(driver.log.contains("REQBUFS userptr 0"))
        }
        #expect(device.mapped.count == 4)
        for index in 0..<640 { device.mapped[0][index] = UInt8(index % 251) }
        let slot = try #require(try stream.dequeue())
        #expect(slot.bytesUsed == [640])
        let isSame = slot.regions[0].prefix(640).elementsEqual((0..<640).map { UInt8($0 % 251) })
        #expect(isSame)
        // The driver has its buffer back already, and the slot is nobody's.
        #expect(driver.queued.count == 4)
        // Without a slot, frames are lost until one comes.
        for _ in 0..<3 { #expect(try stream.dequeue() != nil) }
        #expect(try stream.dequeue() == nil)
        #expect(driver.queued.count == 4)
        try stream.enqueue(stream.slots[9])
        #expect(try stream.dequeue()?.index == 9)
        try camera.stopStreaming()
        #expect(driver.log.suffix(2) == ["STREAMOFF", "REQBUFS mmap 0"])
    }

    /// What another way of giving memory would not change is told as it is.
    @Test(arguments: [(EBUSY, SourceError.Kind.inUse), (ENODEV, .disconnected), (ENOSPC, .noResources)])
    func finalRefusals(_ number: Int32, _ kind: SourceError.Kind) throws {
        driver.startError = number
        _ = try camera.open()
        let error = #expect(throws: SourceError.self) { _ = try camera.startStreaming() }
        #expect(error?.kind == kind && error?.errno == number)
        #expect(!driver.log.contains { $0.hasPrefix("REQBUFS mmap") })
        #expect(driver.log.last == "REQBUFS userptr 0")
    }

    /// Until it has the buffers a driver's format may be changed by others, and may need more room than before.
    @Test func sizeGrowsMeanwhile() throws {
        driver.settledSizeImage = 9000
        _ = try camera.open()
        let allocations = Allocations()
        let stream = try camera.startStreaming { layout, bytes throws(SourceError) in
            try allocations.make(layout, bytes)
        }
        #expect(stream.memory == .userptr)
        #expect(allocations.all.map(\.bytes) == [640, 9000])
        #expect(driver.queued.allSatisfy { $0.length == 12288 })
    }

    /// The kernel is never left with pointers to memory that is gone.
    @Test(arguments: [false, true])
    func memoryOutlivesTheKernelsUse(_ isLost: Bool) throws {
        _ = try camera.open()
        let allocations = Allocations()
        var stream: (any FrameStream)? = try camera.startStreaming { layout, bytes throws(SourceError) in
            try allocations.make(layout, bytes)
        }
        #expect(stream != nil)
        stream = nil
        #expect(allocations.last != nil)
        if isLost {
            driver.freeError = ENODEV
            #expect(throws: SourceError.self) { try camera.stopStreaming() }
            // Only the end of the descriptor ends the driver's use.
            #expect(allocations.last != nil)
            camera.close()
        } else {
            try camera.stopStreaming()
        }
        #expect(allocations.last == nil)
    }

    @Test func failedStartKeepsMemoryThatTheDriverHolds() throws {
        driver.startError = ENODEV
        driver.freeError = ENODEV
        _ = try camera.open()
        let allocations = Allocations()
        #expect(throws: SourceError.self) {
            _ = try camera.startStreaming { layout, bytes throws(SourceError) in try allocations.make(layout, bytes) }
        }
        #expect(allocations.last != nil)
        camera.close()
        #expect(allocations.last == nil)
    }

    @Test func noMemory() throws {
        _ = try camera.open()
        let error = #expect(throws: SourceError.self) {
            _ = try camera.startStreaming { _, _ throws(SourceError) in
                throw SourceError(.noResources, operation: "memfd_create", errno: ENOMEM, message: "none")
            }
        }
        #expect(error?.kind == .noResources)
        #expect(!driver.isStreaming)
    }
}
