import CaptureCore
import CaptureSources
import Glibc
import LinuxIO
import Testing

/// A microphone without hardware, as the worker sees one.
@Suite struct VirtualMicrophoneTests {
    private func failure(_ body: () throws -> Void) throws -> SourceError {
        let error = #expect(throws: SourceError.self) { try body() }
        return try #require(error)
    }

    // MARK: Formats

    @Test func whatItTellsOfItself() throws {
        let microphone = VirtualMicrophone(index: 3)
        #expect(microphone.identity.mediaType == .audio && microphone.identity.uniqueID == "virtual-microphone-3")
        let description = try microphone.open()
        #expect(description.formats.map(\.id) == ["a0", "a1"])
        #expect(description.formats.map(\.sampleFormat) == [.s16, .f32])
        #expect(description.formats.allSatisfy { $0.rates == [16000, 44100, 48000] && $0.channels == 1...2 })
        #expect(description.controls.map(\.name) == ["gain", "mute", "data_source"])
        #expect(description.dataSources.map(\.orientation) == [.front, .back])
        #expect(
            try microphone.activeFormat()
                == SoundFormat(sampleFormat: .s16, rate: 48000, channels: 2, periodFrames: 480))
        for format in description.formats {
            for rate in format.rates {
                for channels in format.channels {
                    var wanted = SoundFormat(sampleFormat: format.sampleFormat, rate: rate, channels: channels)
                    let made = try microphone.setFormat(wanted)
                    wanted.periodFrames = rate / 100
                    #expect(made == wanted && format.isRow(of: made))
                }
            }
        }
    }

    @Test func aFormatThatItDoesNotHaveBecomesTheNearest() throws {
        let microphone = try openMicrophone()
        let before = try microphone.activeFormat()
        let tried = try microphone.tryFormat(
            SoundFormat(sampleFormat: .s32, rate: 96000, channels: 8, periodFrames: 1))
        #expect(tried == SoundFormat(sampleFormat: .f32, rate: 48000, channels: 2, periodFrames: 32))
        #expect(try microphone.activeFormat() == before)
        _ = try microphone.tryFormat(
            SoundFormat(sampleFormat: .s16, rate: .min, channels: .max, periodFrames: .max))
        let stream = try microphone.startCapture()
        #expect(stream.format == before)
        #expect(try failure { _ = try microphone.setFormat(before) }.kind == .inUse)
        try microphone.stopCapture()
        microphone.close()
        #expect(try failure { _ = try microphone.activeFormat() }.kind == .failed)
    }

    // MARK: Sound

    /// Numbers and times are one thing: also where this test came too late for some.
    @Test(arguments: [(SampleFormat.s16, 48000, 2), (.f32, 44100, 1), (.s16, 16000, 1)])
    func periodsFollowOneAnother(_ sampleFormat: SampleFormat, _ rate: Int, _ channels: Int) throws {
        let microphone = try openMicrophone(sampleFormat, rate: rate, channels: channels, period: rate / 100)
        let reader = SoundReader(try microphone.startCapture())
        defer { try? microphone.stopCapture() }
        let format = reader.stream.format
        var previous: SoundPeriod?
        for _ in 0..<50 {
            let period = try reader.next().period
            #expect(period.frames == rate / 100)
            if let previous {
                let end = previous.firstFrame + UInt64(previous.frames)
                #expect(period.isDiscontinuous == (period.firstFrame != end) && period.firstFrame >= end)
                let distance = format.nanoseconds(frames: Int64(period.firstFrame - previous.firstFrame))
                #expect(abs(period.monotonicTime - previous.monotonicTime - distance) <= 1)
            } else {
                #expect(period.firstFrame == 0 && !period.isDiscontinuous)
            }
            // It has been heard whole.
            #expect(
                period.monotonicTime + format.nanoseconds(frames: Int64(period.frames)) <= MonotonicClock.now() + 1)
            previous = period
        }
    }

    /// The sample at the full second, and the tick that says which second it is.
    @Test(arguments: [SampleFormat.s16, .f32])
    func aTickAtEachSecondOfTheMonotonicClock(_ sampleFormat: SampleFormat) throws {
        let microphone = try openMicrophone(sampleFormat, period: 4800)
        let reader = SoundReader(try microphone.startCapture())
        defer { try? microphone.stopCapture() }
        var rest = [Double]()
        var begin: Int64?
        var second: Int64 = 0
        // Until a period with the tick's beginning, and the one after it.
        while true {
            let heard = try reader.next()
            let time = heard.period.monotonicTime
            if begin != nil, !heard.period.isDiscontinuous {
                rest += heard.channels[0]
                break
            }
            begin = nil
            second = (time + 999_999_999) / 1_000_000_000
            guard second * 1_000_000_000 - time < 100_000_000 else { continue }
            begin = time
            rest = heard.channels[0]
        }
        let start = try #require(begin)
        let first = Int(reader.stream.format.frames(nanoseconds: second * 1_000_000_000 - start))
        #expect(rest[..<max(0, first - 1)].allSatisfy { abs($0) < 0.11 }, "it is heard before its time")
        let tick = rest[first..<first + 960]
        #expect(tick.contains { abs($0) > 0.45 })
        // A quarter of the tick's wave is a tenth of a millisecond or so.
        #expect(tick.prefix(12).contains { abs($0) > 0.3 }, "it is late")
        #expect(rest[(first + 961)...].allSatisfy { abs($0) < 0.11 }, "it doesn't end")
        let loudest = (0..<10).max {
            amplitude(of: 2000 + 200 * Double($0), in: tick, rate: 48000)
                < amplitude(of: 2000 + 200 * Double($1), in: tick, rate: 48000)
        }
        #expect(loudest.map(Int64.init) == second % 10)
    }

    @Test func gainMuteAndSourceAreHeard() throws {
        let microphone = try openMicrophone(channels: 2)
        let reader = SoundReader(try microphone.startCapture())
        defer { try? microphone.stopCapture() }
        func tones() throws -> [[Double]] {
            // What has been heard before now may be as it was set before.
            let heard = try reader.nextWithoutTick(from: MonotonicClock.now())
            return heard.channels.map { samples in
                [440, 660, 880, 1320].map { amplitude(of: $0, in: samples, rate: 48000) }
            }
        }
        func isNear(_ found: [[Double]], _ wanted: [[Double]]) -> Bool {
            zip(found, wanted).allSatisfy { zip($0, $1).allSatisfy { abs($0 - $1) < 0.0005 } }
        }
        #expect(isNear(try tones(), [[0.1, 0, 0, 0], [0, 0, 0.1, 0]]))
        try microphone.setControl("gain", to: .integer(-2000))
        #expect(isNear(try tones(), [[0.01, 0, 0, 0], [0, 0, 0.01, 0]]))
        try microphone.setControl("gain", to: .integer(600))
        #expect(isNear(try tones(), [[0.19953, 0, 0, 0], [0, 0, 0.19953, 0]]))
        try microphone.setControl("gain", to: .integer(0))
        try microphone.setControl("data_source", to: .integer(1))
        #expect(isNear(try tones(), [[0, 0.1, 0, 0], [0, 0, 0, 0.1]]))
        try microphone.setControl("mute", to: .boolean(true))
        #expect(
            try reader.nextWithoutTick(from: MonotonicClock.now()).channels.allSatisfy { $0.allSatisfy { $0 == 0 } })
        #expect(
            try microphone.controlValues()
                == ["gain": .integer(0), "mute": .boolean(true), "data_source": .integer(1)])
        #expect(try failure { try microphone.setControl("gain", to: .integer(9999)) }.errno == ERANGE)
        #expect(try failure { try microphone.setControl("bass", to: .integer(1)) }.kind == .refused)
    }

    @Test func soundThatNobodyFetchesIsLostAndCounted() throws {
        let microphone = try openMicrophone(.s16, period: 480)
        let reader = SoundReader(try microphone.startCapture())
        defer { try? microphone.stopCapture() }
        _ = try reader.next()
        try wait(until: MonotonicClock.now() + 600_000_000)
        var next: UInt64 = 480
        var lost: UInt64 = 0
        for _ in 0..<200 where reader.stream.overruns == 0 {
            let period = try reader.next().period
            lost += period.firstFrame - next
            next = period.firstFrame + 480
        }
        #expect(lost > 0 && reader.stream.lostFrames == lost && lost % 480 == 0)
    }

    // MARK: Faults

    @Test func anUnpluggedMicrophoneIsGone() throws {
        let microphone = try openMicrophone()
        try microphone.setControl("gain", to: .integer(500))
        let reader = SoundReader(try microphone.startCapture())
        let events = try #require(try microphone.events())
        _ = try reader.next()
        try microphone.injectFault(.unplug)
        #expect(try failure { while true { _ = try reader.next() } }.kind == .disconnected)
        #expect(try failure { _ = try events.next() }.errno == ENODEV)
        #expect(try failure { _ = try microphone.controlValues() }.kind == .disconnected)
        #expect(try failure { _ = try microphone.startCapture() }.kind == .disconnected)
        microphone.close()
        #expect(try failure { _ = try microphone.open() }.kind == .disconnected)
        try microphone.injectFault(.replug)
        _ = try microphone.open()
        #expect(try microphone.controlValues()["gain"] == .integer(0))
        _ = try SoundReader(try microphone.startCapture()).next()
        try microphone.stopCapture()
    }

    @Test func whatAStallCostsIsLost() throws {
        let microphone = try openMicrophone(period: 480)
        let reader = SoundReader(try microphone.startCapture())
        defer { try? microphone.stopCapture() }
        _ = try reader.next()
        try microphone.injectFault(.stall(milliseconds: 200))
        var heard = try reader.next()
        for _ in 0..<200 where !heard.period.isDiscontinuous { heard = try reader.next() }
        // A loaded machine may cause others.
        #expect(reader.stream.overruns >= 1 && reader.stream.lostFrames >= 19 * 480)
    }

    @Test func itIsBusyOnceOrHasNoRoom() throws {
        let microphone = try openMicrophone()
        try microphone.injectFault(.busy(milliseconds: nil))
        #expect(try failure { _ = try microphone.startCapture() }.kind == .inUse)
        try microphone.injectFault(.noSpace(milliseconds: nil))
        #expect(try failure { _ = try microphone.startCapture() }.kind == .noResources)
        try microphone.injectFault(.none)
        _ = try SoundReader(try microphone.startCapture()).next()
        try microphone.stopCapture()
        #expect(try failure { try microphone.injectFault(.corrupt(frames: 1)) }.kind == .refused)
    }

    @Test func whatAnotherProgramSetsIsTold() throws {
        let microphone = try openMicrophone()
        let events = try #require(try microphone.events())
        try microphone.setControl("gain", to: .integer(100))
        #expect(try events.next() == nil)
        try microphone.injectFault(.meddle(control: "gain", value: .integer(250)))
        guard case .control(let event) = try events.next() else { throw noEvent }
        #expect(event.id == MicrophoneControl.ID.gain && event.value == .integer(250))
        #expect(try microphone.controlValues()["gain"] == .integer(250))
    }

    private let noEvent = SourceError(.failed, operation: "test", message: "no event came")

    /// Its times stay true, and its frames lie closer together.
    @Test func aFastClockTakesMoreFrames() throws {
        let microphone = try openMicrophone(period: 480)
        try microphone.injectFault(.drift(partsPerMillion: 100_000))
        let reader = SoundReader(try microphone.startCapture())
        defer { try? microphone.stopCapture() }
        let first = try reader.next().period
        let second = try reader.next().period
        let distance = second.monotonicTime - first.monotonicTime
        let frames = Int64(second.firstFrame - first.firstFrame)
        #expect(abs(distance - frames * 1_000_000_000 / 52800) <= frames)
    }
}
