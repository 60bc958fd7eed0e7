import BusProtocol
import CaptureCore
import JSON
import Testing

@Suite struct SoundPlannerTests {
    private let current = SoundConfiguration(
        format: SoundFormat(sampleFormat: .s16, rate: 48000, channels: 2, periodFrames: 480), controls: [:])

    private var planner: SoundPlanner {
        SoundPlanner(
            description: MicrophoneDescription(
                identity: DeviceIdentity(
                    uniqueID: "m", localizedName: "M", mediaType: .audio, type: .external, position: .external,
                    driver: "d", bus: "b"),
                formats: [
                    MicrophoneFormat(
                        id: "a0", sampleFormat: .s16, channels: 1...2, rates: [16000, 44100, 48000], rateRange: nil,
                        periodFrames: 16...8192),
                    MicrophoneFormat(
                        id: "a1", sampleFormat: .s32, channels: 2...4, rates: [48000, 96000], rateRange: 40000...96000,
                        periodFrames: 16...8192),
                ],
                controls: [
                    CaptureControl(
                        name: "gain", title: "Gain", id: 1, type: .integer, minimum: -1000, maximum: 2000, step: 100,
                        defaultValue: 0),
                    CaptureControl(
                        name: "data_source", title: "Source", id: 3, type: .menu, minimum: 0, maximum: 1, step: 1,
                        defaultValue: 0, menu: [0: .name("Front Mic"), 1: .name("Rear Mic")]),
                ],
                dataSources: [
                    SoundDataSource(id: "front_mic", name: "Front Mic", orientation: .front),
                    SoundDataSource(id: "rear_mic", name: "Rear Mic", orientation: .back),
                ]))
    }

    private func plan(
        _ format: JSONValue? = nil, controls: JSONValue? = nil, _ mode: ConfigurationMode = .exact
    ) throws(BusError) -> SoundPlan {
        let change = JSONValue.members(["device": "mic0", "activeFormat": format, "controls": controls])
        return try planner.plan(
            try ConfigurationChange.parse(change, path: ""), path: "", current: current, mode: mode)
    }

    private func refusal(_ body: () throws(BusError) -> SoundPlan) -> BusError? {
        do throws(BusError) {
            _ = try body()
            return nil
        } catch {
            return error
        }
    }

    @Test("what is not asked stays")
    func stays() throws {
        #expect(try plan(["rate": 44100]).format == SoundFormat(sampleFormat: .s16, rate: 44100, channels: 2))
        #expect(try plan(["channels": 1]).format == SoundFormat(sampleFormat: .s16, rate: 48000, channels: 1))
        #expect(try plan(["sampleFormat": "s32"]).format == SoundFormat(sampleFormat: .s32, rate: 48000, channels: 2))
        // As it is, to the length of its periods.
        #expect(try plan(["rate": 48000, "channels": 2]).format == current.format)
        #expect(try plan(["rate": 48000]).adjustments.isEmpty)
    }

    @Test("what only another sample format has brings that along")
    func other() throws {
        #expect(try plan(["rate": 96000]).format == SoundFormat(sampleFormat: .s32, rate: 96000, channels: 2))
        #expect(try plan(["channels": 4]).format == SoundFormat(sampleFormat: .s32, rate: 48000, channels: 4))
        #expect(try plan(["rate": 50000]).format == SoundFormat(sampleFormat: .s32, rate: 50000, channels: 2))
        #expect(try plan("a1").format == SoundFormat(sampleFormat: .s32, rate: 48000, channels: 2))
        #expect(try plan(["id": "a0"]).format == current.format)
    }

    @Test("what there is not is refused with what is nearest, or that is taken")
    func nearest() throws {
        let refused = refusal { () throws(BusError) in try plan(["rate": 15000, "channels": 1]) }
        #expect(refused?.reason == .formatUnsupported)
        #expect(refused?.data["nearest"]?["rate"] == 16000 && refused?.data["nearest"]?["id"] == "a0")
        let taken = try plan(["rate": 15000, "channels": 1], .nearest)
        #expect(taken.format == SoundFormat(sampleFormat: .s16, rate: 16000, channels: 1))
        #expect(taken.adjustments.map(\.path) == ["activeFormat"])
        for wrong: JSONValue in ["a9", ["sampleFormat": "f32"], ["channels": 8], ["width": 640, "height": 480]] {
            #expect(refusal { () throws(BusError) in try plan(wrong) }?.reason == .formatUnsupported, "\(wrong)")
        }
        for wrong: JSONValue in [["rate": 0], ["rate": "48000"], ["sampleFormat": "mp3"], ["rate": 48000, "width": 1]] {
            #expect(refusal { () throws(BusError) in try plan(wrong) }?.reason == .invalidParams, "\(wrong)")
        }
    }

    @Test("controls go by their names, data sources by their ids too")
    func controls() throws {
        let plan = try plan(controls: ["gain": 500, "data_source": "rear_mic"])
        #expect(
            plan.controls == [
                PlannedControl(name: "data_source", value: .integer(1)),
                PlannedControl(name: "gain", value: .integer(500)),
            ])
        #expect(try self.plan(controls: ["data_source": "Front Mic"]).controls.first?.value == .integer(0))
        #expect(refusal { () throws(BusError) in try self.plan(controls: ["gain": 550]) }?.reason == .controlOutOfRange)
        #expect(
            refusal { () throws(BusError) in try self.plan(controls: ["focusMode": "locked"]) }?.reason
                == .controlUnsupported)
    }

    @Test("a camera has no rate, and a microphone no frame rate")
    func strangers() throws {
        let change = try ConfigurationChange.parse(["device": "mic0", "frameRate": 30], path: "")
        let refused = refusal { () throws(BusError) in
            try planner.plan(change, path: "", current: current, mode: .exact)
        }
        #expect(refused?.reason == .invalidParams && refused?.data["path"] == "frameRate")
    }
}
