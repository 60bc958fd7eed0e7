import CaptureCore
import Glibc
import JSON
import Testing

/// How loud sound is measured to be, in each format that it can have.
@Suite struct SoundLevelMeterTests {
    /// Interleaved samples of amplitudes from -1 to 1, as the format writes them.
    private func bytes(_ samples: [Double], _ format: SampleFormat) -> [UInt8] {
        samples.flatMap { sample -> [UInt8] in
            func integer(_ scale: Double, _ count: Int) -> [UInt8] {
                let value = Int64((sample * scale).rounded())
                return (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
            }
            switch format {
            case .s16: return integer(0x7FFF, 2)
            case .s24: return integer(0x7F_FFFF, 3)
            // What the fourth byte holds doesn't count.
            case .s24in32: return integer(0x7F_FFFF, 3) + [0xA5]
            case .s32: return integer(0x7FFF_FFFF, 4)
            case .f32:
                let bits = Float(sample).bitPattern
                return (0..<4).map { UInt8(truncatingIfNeeded: bits >> (8 * $0)) }
            }
        }
    }

    private func reading(_ samples: [Double], _ sampleFormat: SampleFormat, channels: Int) -> SoundLevelMeter.Reading {
        var meter = SoundLevelMeter(SoundFormat(sampleFormat: sampleFormat, rate: 48000, channels: channels))
        bytes(samples, sampleFormat).withUnsafeBytes { meter.add($0) }
        return meter.take()
    }

    private func isNear(_ level: Double, _ wanted: Double) -> Bool { abs(level - wanted) < 0.01 }

    @Test(arguments: SampleFormat.allCases)
    func `a sine and a square of full scale`(_ format: SampleFormat) {
        // The left channel a sine, the right one a square of half its amplitude.
        let samples = (0..<4800).flatMap { index in
            [sin(2 * .pi * Double(index) / 48), index % 2 == 0 ? 0.5 : -0.5]
        }
        let reading = reading(samples, format, channels: 2)
        #expect(isNear(reading.average[0], -3.01) && isNear(reading.peak[0], 0), "\(reading)")
        #expect(isNear(reading.average[1], -6.02) && isNear(reading.peak[1], -6.02), "\(reading)")
    }

    @Test(arguments: SampleFormat.allCases)
    func `silence has no level`(_ format: SampleFormat) {
        let reading = reading([0, 0, 0, 0], format, channels: 1)
        #expect(reading.average == [-.infinity] && reading.peak == [-.infinity])
    }

    @Test func `the loudest sample counts, whichever its sign`() {
        #expect(isNear(reading([0, -0.1, 0.05, 0], .s16, channels: 1).peak[0], -20))
        #expect(reading([0, -1], .s16, channels: 1).peak[0] <= 0)
    }

    @Test func `periods add up, and a reading begins anew`() {
        var meter = SoundLevelMeter(SoundFormat(sampleFormat: .f32, rate: 48000, channels: 1))
        bytes([1, -1], .f32).withUnsafeBytes { meter.add($0) }
        bytes([0, 0], .f32).withUnsafeBytes { meter.add($0) }
        #expect(meter.frames == 4)
        let first = meter.take()
        #expect(isNear(first.average[0], -3.01) && first.peak == [0])
        #expect(meter.frames == 0 && meter.take().peak == [-.infinity])
        // Half a frame at the end is none.
        bytes([0.1], .f32).withUnsafeBytes { meter.add(UnsafeRawBufferPointer(rebasing: $0[..<3])) }
        #expect(meter.frames == 0)
    }

    @Test func `what is no number is silent`() {
        #expect(reading([.nan, .infinity, 0.1], .f32, channels: 1).peak.allSatisfy { isNear($0, -20) })
    }
}

/// Frames and times of a format.
@Suite struct SoundFormatTests {
    @Test func `frames and nanoseconds are each other's`() {
        for rate in [8000, 11025, 44100, 48000, 192_000] {
            let format = SoundFormat(sampleFormat: .s24, rate: rate, channels: 2)
            for frames: Int64 in [0, 1, 441, 1_000_003, -5, 48000 * 86400 * 365] {
                #expect(format.frames(nanoseconds: format.nanoseconds(frames: frames)) == frames)
            }
            #expect(format.nanoseconds(frames: Int64(rate)) == 1_000_000_000)
            #expect(format.frameBytes == 6)
        }
    }

    @Test func `a row is of the formats that it takes`() {
        var row = MicrophoneFormat(
            id: "a0", sampleFormat: .s16, channels: 1...2, rates: [44100, 48000], rateRange: nil,
            periodFrames: 32...4800)
        func isRow(_ sampleFormat: SampleFormat, _ rate: Int, _ channels: Int) -> Bool {
            row.isRow(of: SoundFormat(sampleFormat: sampleFormat, rate: rate, channels: channels))
        }
        #expect(isRow(.s16, 44100, 2) && isRow(.s16, 48000, 1))
        #expect(!isRow(.s16, 46000, 2) && !isRow(.s16, 48000, 3) && !isRow(.f32, 48000, 2))
        row.rateRange = 44100...48000
        #expect(isRow(.s16, 46000, 2) && !isRow(.s16, 48001, 2))
    }

    @Test func `where a data source is, its name says`() {
        #expect(SoundDataSource.orientation(ofName: "Front Mic") == .front)
        #expect(SoundDataSource.orientation(ofName: "Rear Mic") == .back)
        #expect(SoundDataSource.orientation(ofName: "bottom") == .bottom)
        #expect(SoundDataSource.orientation(ofName: "Internal Mic") == nil)
        #expect(SoundDataSource.orientation(ofName: "Frontier") == nil)
    }
}

/// What a search tells of microphones.
@Suite struct MicrophoneFactsTests {
    private let facts = MicrophoneFacts(
        node: "/dev/snd/pcmC1D0c", pcm: "hw:CARD=C920,DEV=0", card: 1, cardID: "C920", index: 0,
        device: "/sys/devices/pci0000:00/usb1/1-2/1-2:1.2",
        usb: .init(vendor: "046d", product: "082d", serial: "A1B2", interface: "02"), cardName: "HD Pro Webcam C920",
        name: "USB Audio", driver: "USB-Audio", bus: "usb-0000:00:14.0-2")

    @Test func `they and a survey of them are read as they were written`() {
        #expect(MicrophoneFacts(json: facts.json) == facts)
        var onBoard = facts
        onBoard.usb = nil
        #expect(MicrophoneFacts(json: onBoard.json) == onBoard)
        #expect(MicrophoneFacts(json: ["node": "/dev/snd/pcmC1D0c"]) == nil)
        let survey = CameraSurvey(
            cameras: [], unreadable: [], microphones: [facts, onBoard],
            unreadableSound: [.init(node: "/dev/snd/controlC3", index: 3, device: "", why: "not yet")])
        #expect(CameraSurvey(json: survey.json) == survey)
        #expect(CameraSurvey(json: ["cameras": [], "unreadable": []])?.microphones == [])
    }

    @Test func `their ids are those of the place, and never a camera's`() {
        var claims: [String: CameraIdentities.Claim] = [:]
        #expect(CameraIdentities.assign([facts], claims: &claims) == ["usb-046d:082d-A1B2-if02-pcm0"])
        // Another number, the same microphone.
        var moved = facts
        (moved.node, moved.card, moved.cardID) = ("/dev/snd/pcmC5D0c", 5, "C920_1")
        #expect(CameraIdentities.assign([moved], claims: &claims) == ["usb-046d:082d-A1B2-if02-pcm0"])
        var second = facts
        second.index = 1
        #expect(Set(CameraIdentities.assign([facts, second], claims: &claims)).count == 2)
        let loop = MicrophoneFacts(
            node: "/dev/snd/pcmC0D1c", pcm: "hw:CARD=Loopback,DEV=1", card: 0, cardID: "Loopback", index: 1,
            device: "/sys/devices/platform/snd_aloop.0", cardName: "Loopback", name: "Loopback PCM", driver: "Loopback",
            bus: "platform:snd_aloop.0")
        #expect(CameraIdentities.assign([loop], claims: &claims) == ["platform:snd_aloop.0-Loopback-pcm1"])
    }

    @Test func `what they are called and what kind they are of`() {
        let identity = facts.identity(uniqueID: "u")
        #expect(identity.mediaType == .audio && identity.type == .external && identity.uniqueID == "u")
        #expect(identity.localizedName == "HD Pro Webcam C920" && identity.node == "/dev/snd/pcmC1D0c")
        var onBoard = facts
        (onBoard.usb, onBoard.index, onBoard.name) = (nil, 2, "ALC256 Alt Analog")
        #expect(onBoard.identity(uniqueID: "u").type == .builtInMicrophone)
        #expect(onBoard.identity(uniqueID: "u").localizedName == "HD Pro Webcam C920 ALC256 Alt Analog")
    }
}
