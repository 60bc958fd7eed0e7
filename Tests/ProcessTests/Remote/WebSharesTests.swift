import BusProtocol
import CameraBusTesting
import JSON
import Testing

extension ProcessTests {
    /// What one user of the page leaves to the others.
    @Suite(.timeLimit(.minutes(5))) struct WebShares {
        private static let settings = "view 0123456789abcdef Ada\nview 1123456789abcdef Bo\nview 2123456789abcdef Cy\n"

        private static func bearer(_ digit: Int) -> String { "Authorization: Bearer \(digit)123456789abcdef" }

        /// Asks for the next picture of each topic.
        private func ask(_ page: WebSocketProbe, _ renditions: [String]) {
            for rendition in renditions {
                page.send(binary: MediaAsk(.next, topic: Topic.frame("cam0", rendition).bytes).bytes)
            }
        }

        @Test func `a user with all renditions of the gateway gives some up for others`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let web = try await WebGateway(bus, settings: "tokens = \"\(try bus.write(Self.settings, to: "tokens"))\"")
            let page = try WebSocketProbe(web, headers: "\(Self.bearer(0))\r\n")
            let all = (1...4).map { "jpeg:\($0)60x0" }
            ask(page, all)
            var seen: Set<String> = []
            while seen.count < all.count {
                let message = try #require(try page.receiveBinary())
                #expect(!message.payload.isEmpty, "\(message)")
                seen.insert(message.topic)
            }
            // The page still has them while others look.
            for (digit, width) in [(1, 100), (2, 110), (1, 120), (2, 100)] {
                ask(page, all)
                let picture = try await web.get("/camera/cam0.jpg?width=\(width)", ["-H", Self.bearer(digit)])
                #expect(picture.status == 200, "\(String(decoding: picture.body.prefix(300), as: UTF8.self))")
            }
            // And it gets all again when they have gone.
            seen = []
            while seen.count < all.count {
                let message = try #require(try page.receiveBinary())
                if !message.payload.isEmpty { seen.insert(message.topic) }
                ask(page, [String(message.topic.split(separator: "/")[2])])
            }
            try await bus.stop()
        }

        @Test func `pixels that a page doesn't get keep no camera streaming, and take no place`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let web = try await WebGateway(bus, settings: "tokens = \"\(try bus.write(Self.settings, to: "tokens"))\"")
            let page = try WebSocketProbe(web, headers: "\(Self.bearer(0))\r\n")
            let renditions = ["gray", "bgr:320x0", "rgb:160x0", "yuyv", "nv12", "i420"]
            ask(page, renditions)
            for _ in renditions {
                let message = try #require(try page.receiveBinary())
                #expect(message.header?["error"]?["reason"] == "formatUnsupported", "\(message)")
            }
            // What the gateway had subscribed to before this would have been made by now, too.
            ask(page, ["jpeg:100x0"])
            #expect(try page.receiveBinary()?.payload.isEmpty == false)
            func frames(_ rendition: String) throws -> Int64 {
                try bus.metric("worker_rendition_frames{device=\"cam0\",rendition=\"\(rendition)\"}")
            }
            try await eventually { try frames("jpeg:100x0") > 0 }
            for rendition in renditions { #expect(try frames(rendition) == 0, "\(rendition)") }
            try await bus.stop()
        }

        @Test func `a camera without compression does not stream for a page that asks for its own format`() async throws
        {
            let bus = try await BusHarness(virtual: 1)
            let web = try await WebGateway(bus)
            let page = try WebSocketProbe(web)
            let client = try RawClient(path: bus.directory.commandSocket)
            var isStreaming = true
            for _ in 0..<5 where isStreaming {
                ask(page, ["native"])
                let message = try #require(try page.receiveBinary())
                #expect(message.header?["error"]?["reason"] == "formatUnsupported", "\(message)")
                let device = try client.call("device.get", ["device": "cam0"])["device"]
                isStreaming = device?["isStreaming"] == true
            }
            #expect(!isStreaming)
            try await bus.stop()
        }
    }
}
