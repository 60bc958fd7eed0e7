import BusProtocol
import Testing

/// What goes to other machines, and where.
@Suite struct RemoteWireTests {
    @Test(arguments: [
        ("tcp://rig:7350", "tcp://rig:7351", "tcp://rig:7352"), ("tcp://*:1", "tcp://*:2", "tcp://*:3"),
        ("tcp://10.0.0.1:65533", "tcp://10.0.0.1:65534", "tcp://10.0.0.1:65535"),
        ("tcp://[::1]:7350", "tcp://[::1]:7351", "tcp://[::1]:7352"),
    ])
    func `an address has three ports`(_ text: String, events: String, media: String) throws {
        let address = try #require(TCPAddress(text))
        #expect(address.description == text)
        #expect(address.endpoint(.events) == events && address.endpoint(.media) == media)
        #expect(address.isIPv6 == text.contains("["))
    }

    @Test(arguments: [
        "", "tcp://", "tcp://7350", "tcp://:7350", "tcp://rig", "tcp://rig:", "tcp://rig:0", "tcp://rig:65534",
        "tcp://rig:x",
        "ipc://rig:7350", "tcp://::1:7350", "tcp://a b:7350", "tcp://rig/x:7350",
    ])
    func `what is no address is none`(_ text: String) { #expect(TCPAddress(text) == nil) }

    @Test func `a client asks by a byte and a topic`() {
        let topic = Topic.frame("cam0", "jpeg").bytes
        for kind in MediaAsk.Kind.allCases {
            let ask = MediaAsk(kind, topic: topic)
            #expect(ask.bytes.first == kind.rawValue && MediaAsk(parsing: ask.bytes) == ask)
        }
        for wrong in [[], [1], [3] + topic, [1] + [UInt8](repeating: 97, count: 257)] as [[UInt8]] {
            #expect(MediaAsk(parsing: wrong) == nil)
        }
    }

    @Test(
        arguments: [
            (#"{"v":1,"format":"YUYV","sequence":1}"#, true, nil), (#"{"v":1,"format":"JPEG"}"#, false, nil),
            (#"{"format":"H264","keyframe":true}"#, false, true),
            (#"{"format":"H264","keyframe":false}"#, false, false),
            (#"{"v":1,"error":{"message":"\"format\":\"x\""}}"#, false, nil), ("", false, nil),
            (#"{"set":"a","frames":[{"format":"MJPG"},{"missing":{}},{"format":"YUYV"}]}"#, true, nil),
            (#"{"set":"a","frames":[{"format":"YUYV"},{"format":"MJPG"}]}"#, true, nil),
            (#"{"set":"a","frames":[{"format":"MJPG"},{"format":"JPEG"}],"format":""#, true, nil),
            (#"{"set":"a","frames":[{"format":"MJPG"},{"format":"JPEG"}]}"#, false, nil),
        ] as [(String, Bool, Bool?)])
    func `a header tells whether its pixels are compressed, and whether others can begin there`(
        _ header: String, isUncompressed: Bool, isKeyframe: Bool?
    ) {
        Array(header.utf8).withUnsafeBytes { bytes in
            #expect(FrameHeaderScan.isUncompressed(bytes) == isUncompressed)
            #expect(FrameHeaderScan.isKeyframe(bytes) == isKeyframe)
        }
    }
}
