import CaptureCore
import CaptureSources
import Foundation
import Testing
import Video4Linux

extension KernelTests {
    @Suite struct Discovery {
        @Test func camerasInOrder() throws {
            let cameras = KernelRing.identities
            #expect(Set(cameras.map(\.uniqueID)).count == cameras.count)
            for camera in cameras {
                #expect(!camera.uniqueID.isEmpty)
                #expect(camera.uniqueID.wholeMatch(of: /[A-Za-z0-9._:-]+/) != nil)
                #expect(!camera.uniqueID.contains("/dev/") && !camera.uniqueID.contains("video"))
                #expect(camera.localizedName == "vivid")
                #expect(camera.type == .external)
                #expect(camera.position == .unspecified)
                #expect(camera.bus.hasPrefix("platform:vivid-"))
            }
            let numbers = cameras.compactMap { $0.node.flatMap { Int($0.dropFirst("/dev/video".count)) } }
            #expect(numbers == numbers.sorted())
        }

        @Test func sameIDsAgain() {
            #expect(V4L2Discovery.cameras().filter { $0.driver == "vivid" } == KernelRing.identities)
        }

        /// The fourth device of the ring has an output and a metadata node too.
        @Test(.enabled(if: KernelRing.topology == .single))
        func otherNodesAreNoCameras() throws {
            let nodes = try FileManager.default.contentsOfDirectory(atPath: "/sys/class/video4linux")
                .filter { $0.hasPrefix("video") }
            #expect(nodes.count == 6)
            #expect(V4L2Discovery.cameras().count == 4)
            #expect(V4L2Discovery.survey().unreadable.isEmpty)
            let kinds = try nodes.sorted().map { try VideoNode(path: "/dev/" + $0).capability().isCapture }
            #expect(kinds == [true, true, true, true, false, false])
        }

        /// A node's name goes to whoever comes next: another camera behind it is not this one.
        @Test func anotherCameraBehindTheNode() throws {
            var identity = try #require(KernelRing.identities.first)
            identity.bus = "usb-0000:00:14.0-1"
            let camera = V4L2Camera(identity)
            let error = #expect(throws: SourceError.self) { _ = try camera.open() }
            #expect(error?.kind == .disconnected)
        }

        @Test func nodeThatIsGone() throws {
            var identity = try #require(KernelRing.identities.first)
            identity.node = "/dev/video999"
            let camera = V4L2Camera(identity)
            let error = #expect(throws: SourceError.self) { _ = try camera.open() }
            #expect(error?.kind == .disconnected)
            #expect(error?.operation == "open")
        }
    }
}
