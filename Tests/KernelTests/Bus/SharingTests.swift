import CameraBusTesting
import CaptureCore
import CaptureSources
import Foundation
import Testing

extension KernelTests {
    /// Devices that someone else has, or that fail.
    @Suite struct Sharing {
        /// While another program streams, a camera can be looked at and its controls set, but not started.
        @Test func streamedByAnother() throws {
            let other = try TestCamera()
            try other.use("YUYV", 640, 360)
            let theirs = try other.camera.startStreaming()
            _ = try nextFrame(theirs)

            let camera = V4L2Camera(try #require(KernelRing.identities.first))
            let description = try camera.open()
            #expect(description == other.description || !description.formats.isEmpty)
            #expect(try camera.activeFormat() == other.format("YUYV", 640, 360))
            try camera.setControl("brightness", to: .integer(100))
            let format = #expect(throws: SourceError.self) {
                _ = try camera.setFormat(try other.format("GREY", 320, 180))
            }
            #expect(format?.kind == .inUse)
            #expect(format?.operation == "VIDIOC_S_FMT")
            let start = #expect(throws: SourceError.self) { _ = try camera.startStreaming() }
            #expect(start?.kind == .inUse)
            #expect(start?.errno == EBUSY)
            // Nothing of this disturbs the one who streams.
            for _ in 0..<8 { try theirs.enqueue(try nextFrame(theirs)) }
            camera.close()
            try theirs.enqueue(try nextFrame(theirs))

            try other.camera.stopStreaming()
            _ = try camera.open()
            _ = try nextFrame(try camera.startStreaming())
            camera.close()
        }

        @Test(arguments: ["inject_vidioc_reqbufs_error", "inject_vidioc_streamon_error", "inject_vidioc_qbuf_error"])
        func failedStartCanBeRepeated(_ fault: String) throws {
            let test = try TestCamera()
            try test.use("GREY", 320, 180)
            try test.set(fault, .boolean(true))
            if KernelRing.topology == .multi {
                let error = #expect(throws: SourceError.self) { _ = try test.camera.startStreaming() }
                #expect(error?.kind == .refused)
            } else {
                // What a driver refuses to do with our memory, it is asked to do with its own.
                let stream = try test.camera.startStreaming()
                #expect(stream.memory == .mmap)
                for _ in 0..<8 { try stream.enqueue(try nextFrame(stream)) }
                try test.camera.stopStreaming()
            }
            _ = try test.camera.setFormat(try test.format("YUYV", 320, 180))
            let stream = try test.camera.startStreaming()
            #expect(stream.memory == (KernelRing.topology == .multi ? .mmap : .userptr))
            _ = try nextFrame(stream)
        }

        @Test func fatalErrorEndsTheStreamAndNotTheCamera() throws {
            let test = try TestCamera()
            try test.use("GREY", 320, 180)
            let stream = try test.camera.startStreaming()
            try stream.enqueue(try nextFrame(stream))
            try test.set("inject_fatal_streaming_error", .boolean(true))
            let error = #expect(throws: SourceError.self) {
                while true { try stream.enqueue(try nextFrame(stream)) }
            }
            #expect(error?.kind == .disconnected)
            #expect(error?.errno == EIO)
            try test.camera.stopStreaming()
            _ = try nextFrame(try test.camera.startStreaming())
        }

        /// As if unplugged: everything says so, until the last handle is gone, with which vivid plugs it in again.
        @Test func disconnectedDeviceComesBack() throws {
            let camera = V4L2Camera(try #require(KernelRing.identities.last))
            defer { camera.close() }
            _ = try camera.open()
            do {
                let stream = try camera.startStreaming()
                let slot = try nextFrame(stream)
                try camera.setControl("disconnect", to: .boolean(true))
                let ended = #expect(throws: SourceError.self) { while true { _ = try nextFrame(stream) } }
                // Where frames are copied, the driver isn't asked.
                let queued =
                    stream.memory == .userptr
                    ? #expect(throws: SourceError.self) { try stream.enqueue(slot) } : ended
                for error in [
                    ended, queued,
                    #expect(throws: SourceError.self) { try camera.stopStreaming() },
                    #expect(throws: SourceError.self) { _ = try camera.activeFormat() },
                ] { #expect(error?.kind == .disconnected) }
            }
            // The first attempt finds the lost handle, the second needs none.
            let error = #expect(throws: SourceError.self) { _ = try camera.open() }
            #expect(error?.kind == .disconnected)
            _ = try camera.open()
            _ = try nextFrame(try camera.startStreaming())
        }
    }
}
