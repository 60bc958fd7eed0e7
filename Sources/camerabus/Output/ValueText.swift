import JSON
import LinuxIO

/// Values of the bus as text for people.
enum ValueText {
    /// `YUYV 1280x720`; nothing where there is no format.
    static func format(_ format: JSONValue?) -> String {
        if let format, let sample = format["sampleFormat"]?.string {
            return "\(sample) \(number(format["rate"])) Hz x\(number(format["channels"]))"
        }
        guard let format, let pixels = format["pixelFormat"]?.string else { return "-" }
        return "\(pixels) \(number(format["width"]))x\(number(format["height"]))"
    }

    /// What a camera states about its pictures; what is usual of them is left out: `YUYV 640x480, 30 frames/s,
    /// primaries bt709, transfer iec61966-2-1, matrix smpte170m, range video, pixels 64:45, turn by 90 to be upright`.
    static func formatDescription(_ stated: JSONValue) -> String {
        var parts = [format(stated)]
        let rate = rate(ofDuration: stated["frameDuration"])
        if rate != "-" { parts.append("\(rate) frames/s") }
        let words = [
            ("primaries", "colorPrimaries"), ("transfer", "transferFunction"), ("matrix", "yCbCrMatrix"),
            ("range", "colorRange"), ("chroma", "chromaLocation"), ("pixels", "pixelAspectRatio"),
        ]
        for (title, member) in words {
            if let value = stated[member]?.string { parts.append("\(title) \(value)") }
        }
        if let bits = stated["bitsPerComponent"]?.integer { parts.append("\(bits) bits") }
        if let area = stated["cleanAperture"] {
            parts.append("clean \(size(area))+\(number(area["x"]))+\(number(area["y"]))")
        }
        if let meters = stated["metersPerStep"]?.double { parts.append("\(JSONValue(meters)) m a step") }
        if let turn = stated["orientation"]?.integer, turn != 0 { parts.append("turn by \(turn) to be upright") }
        if stated["mirrored"] == true { parts.append("mirrored") }
        return parts.joined(separator: ", ")
    }

    /// Without digits that say nothing: `30`, `29.97`.
    static func rate(_ value: Double) -> String {
        let hundredths = (value * 100).rounded()
        guard hundredths.isFinite, abs(hundredths) < 1e15 else { return "-" }
        let rest = abs(Int64(hundredths) % 100)
        let whole = (hundredths < 0 ? "-" : "") + String(abs(Int64(hundredths)) / 100)
        if rest == 0 { return whole }
        return rest % 10 == 0 ? "\(whole).\(rest / 10)" : "\(whole).\(rest < 10 ? "0" : "")\(rest)"
    }

    /// `1/100`; nil: it is none.
    static func fraction(_ text: String) -> Double? {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, let above = Int32(parts[0]), let below = Int32(parts[1]), above > 0, below > 0 else {
            return nil
        }
        return Double(above) / Double(below)
    }

    /// Frames a second of a duration `"1/30"`.
    static func rate(ofDuration duration: JSONValue?) -> String {
        let parts = duration?.string?.split(separator: "/").compactMap { Double($0) } ?? []
        guard parts.count == 2, parts[0] > 0 else { return "-" }
        return rate(parts[1] / parts[0])
    }

    /// The rates of a row of the format table: `30, 15`, `1–60`.
    static func rates(_ ranges: JSONValue?) -> String {
        let texts = (ranges?.array ?? []).map { range in
            let low = rate(ofDuration: range["maxFrameDuration"])
            let high = rate(ofDuration: range["minFrameDuration"])
            return low == high ? low : "\(low)–\(high)"
        }
        return texts.isEmpty ? "-" : texts.joined(separator: ", ")
    }

    /// The sizes of a row of the format table: `640x480`, `32x32–1920x1080 by 8x2`.
    static func size(_ format: JSONValue) -> String {
        guard let sizes = format["sizes"], !sizes.isNull else {
            return "\(number(format["width"]))x\(number(format["height"]))"
        }
        let text =
            "\(number(sizes["minWidth"]))x\(number(sizes["minHeight"]))"
            + "–\(number(sizes["maxWidth"]))x\(number(sizes["maxHeight"]))"
        let step = "\(number(sizes["stepWidth"]))x\(number(sizes["stepHeight"]))"
        return step == "1x1" ? text : "\(text) by \(step)"
    }

    /// The state of a device, in one word.
    static func state(_ device: JSONValue) -> String {
        if device["connected"] == false { return "disconnected" }
        if let reason = device["error"]?["reason"]?.string { return reason }
        if let worker = device["worker"]?["state"]?.string, worker != "running" { return worker }
        if device["isStreaming"] == true { return "streaming" }
        return device["isOpen"] == true ? "open" : "closed"
    }

    /// Those for whom a gateway asks, as the protocol has it.
    private static let remoteUsers: ClosedRange<Int64> = 0xF000_0000...0xFFFF_FFF0

    /// `name (pid 123, uid 1000)`; of a client that a gateway asks for, `name (on another machine)`.
    static func holder(_ holder: JSONValue?) -> String {
        guard let holder, let name = holder["name"]?.string else { return "-" }
        if let uid = holder["uid"]?.integer, remoteUsers.contains(uid) {
            return "\(name) (on another machine)"
        }
        return "\(name) (pid \(number(holder["pid"])), uid \(number(holder["uid"])))"
    }

    /// How long ago that was (monotonic nanoseconds): `5 s`, `3 min`.
    static func age(_ time: JSONValue?, now: Int64 = MonotonicClock.now()) -> String {
        guard let time = time?.integer else { return "-" }
        return span(from: time, to: now)
    }

    /// How long it is until a monotonic time.
    static func left(until time: JSONValue?, now: Int64 = MonotonicClock.now()) -> String {
        guard let time = time?.integer else { return "-" }
        return span(from: now, to: time)
    }

    private static func span(from start: Int64, to end: Int64) -> String {
        let (difference, overflow) = end.subtractingReportingOverflow(start)
        let seconds = overflow ? 0 : max(0, difference / 1_000_000_000)
        switch seconds {
        case ..<120: return "\(seconds) s"
        case ..<7200: return "\(seconds / 60) min"
        case ..<172_800: return "\(seconds / 3600) h"
        default: return "\(seconds / 86400) d"
        }
    }

    /// A value as it stands: text without quotes, everything else as JSON; `-` for nothing.
    static func plain(_ value: JSONValue?) -> String {
        guard let value, !value.isNull else { return "-" }
        return value.string ?? value.description
    }

    /// `29–928`.
    static func span(_ low: JSONValue?, _ high: JSONValue?) -> String {
        guard low?.double != nil || high?.double != nil else { return "-" }
        return "\(plain(low))–\(plain(high))"
    }

    /// A camera control's value as 'camerabus set' takes it: `0.5,0.5` for a point, `1.2,0.8` for gains of red and
    /// blue, `0,0,640,480` for a rectangle.
    static func assigned(_ value: JSONValue?) -> String {
        if let x = value?["x"], let y = value?["y"], let width = value?["width"], let height = value?["height"] {
            return "\(x),\(y),\(width),\(height)"
        }
        if let x = value?["x"], let y = value?["y"] { return "\(x),\(y)" }
        if let red = value?["red"], let blue = value?["blue"] { return "\(red),\(blue)" }
        return plain(value)
    }

    private static func number(_ value: JSONValue?) -> String { value?.integer.map(String.init) ?? "?" }
}
