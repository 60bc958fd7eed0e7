import BusProtocol
import JSON
import Testing

@testable import CaptureCore

@Suite struct ConfigurationChangeTests {
    private func parse(_ text: String) throws -> ConfigurationChange {
        try ConfigurationChange.parse(JSONValue(parsing: text), path: "changes[0]")
    }

    @Test func allForms() throws {
        #expect(try parse(#"{"device":"a"}"#) == ConfigurationChange(device: "a"))
        #expect(try parse(#"{"device":"a","activeFormat":"f3"}"#).activeFormat == .id("f3"))
        #expect(try parse(#"{"device":"a","activeFormat":{"id":"f3"}}"#).activeFormat == .id("f3"))
        let size = Dimensions(width: 640, height: 480)
        #expect(
            try parse(#"{"device":"a","activeFormat":{"width":640,"height":480}}"#).activeFormat
                == .size(pixelFormat: nil, size))
        #expect(
            try parse(#"{"device":"a","activeFormat":{"width":640,"height":480,"pixelFormat":"MJPG"}}"#).activeFormat
                == .size(pixelFormat: .motionJPEG, size))
        #expect(try parse(#"{"device":"a","frameRate":30}"#).frameRate == .rate(30))
        #expect(try parse(#"{"device":"a","frameRate":29.97}"#).frameRate == .rate(29.97))
        #expect(try parse(#"{"device":"a","frameRate":"30000/1001"}"#).frameRate == .rate(29.97))
        #expect(
            try parse(#"{"device":"a","frameRate":{"minFrameDuration":"1/30","maxFrameDuration":"1/10"}}"#).frameRate
                == .range(min: duration(1, 30), max: duration(1, 10)))
        #expect(
            try parse(#"{"device":"a","frameRate":{"maxFrameDuration":"1/10"}}"#).frameRate
                == .range(min: nil, max: duration(1, 10)))
        #expect(try parse(#"{"device":"a","controls":{"x":[1]}}"#).controls == ["x": [1]])
    }

    @Test(arguments: [
        (#"[]"#, "changes[0]"),
        (#"{}"#, "changes[0].device"),
        (#"{"device":1}"#, "changes[0].device"),
        (#"{"device":"a","framerate":30}"#, "changes[0].framerate"),
        (#"{"device":"a","activeFormat":3}"#, "changes[0].activeFormat"),
        (#"{"device":"a","activeFormat":null}"#, "changes[0].activeFormat"),
        (#"{"device":"a","activeFormat":{"width":640}}"#, "changes[0].activeFormat.height"),
        (#"{"device":"a","activeFormat":{"width":640,"height":0}}"#, "changes[0].activeFormat.height"),
        (#"{"device":"a","activeFormat":{"width":9223372036854775807,"height":9}}"#, "changes[0].activeFormat.width"),
        (#"{"device":"a","activeFormat":{"width":640.5,"height":9}}"#, "changes[0].activeFormat.width"),
        (#"{"device":"a","activeFormat":{"width":640,"height":480,"depth":8}}"#, "changes[0].activeFormat.depth"),
        (#"{"device":"a","activeFormat":{"id":"f1","width":640}}"#, "changes[0].activeFormat.width"),
        (
            #"{"device":"a","activeFormat":{"width":640,"height":480,"pixelFormat":"MJPEG"}}"#,
            "changes[0].activeFormat.pixelFormat"
        ),
        (#"{"device":"a","frameRate":0}"#, "changes[0].frameRate"),
        (#"{"device":"a","frameRate":-1e300}"#, "changes[0].frameRate"),
        (#"{"device":"a","frameRate":true}"#, "changes[0].frameRate"),
        (#"{"device":"a","frameRate":"1/30"}"#, "changes[0].frameRate"),
        (#"{"device":"a","frameRate":"1/0"}"#, "changes[0].frameRate"),
        (#"{"device":"a","frameRate":"1/9223372036854775807"}"#, "changes[0].frameRate"),
        (#"{"device":"a","frameRate":{}}"#, "changes[0].frameRate"),
        (#"{"device":"a","frameRate":{"minFrameDuration":30}}"#, "changes[0].frameRate.minFrameDuration"),
        (
            #"{"device":"a","frameRate":{"minFrameDuration":"1/10","maxFrameDuration":"1/30"}}"#,
            "changes[0].frameRate"
        ),
        (#"{"device":"a","controls":[]}"#, "changes[0].controls"),
    ]) func whatIsWrongIsNamed(text: String, path: String) throws {
        let error = #expect(throws: BusError.self) { try parse(text) }
        #expect(error?.reason == .invalidParams)
        #expect(error?.data["path"] == .string(path))
    }

    @Test func aChangeIsWrittenAsItIsRead() throws {
        for text in [
            #"{"device":"a"}"#, #"{"activeFormat":"f1","device":"a","frameRate":30}"#,
            #"{"activeFormat":{"height":480,"pixelFormat":"YUYV","width":640},"device":"a","frameRate":29.97}"#,
            #"{"controls":{"x":null},"device":"a","frameRate":{"maxFrameDuration":"1/10","minFrameDuration":"1/30"}}"#,
        ] { #expect(try parse(text).json.description == text) }
    }
}
