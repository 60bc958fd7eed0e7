import Glibc
import Testing

@testable import ALSA

/// The wrapper over what ALSA has without any hardware. What it makes of drivers is for the kernel ring.
@Suite struct ALSATests {
    private static let wish = PCMParameters(
        format: .signed16, channels: 2, rate: 48000, periodFrames: 480, bufferFrames: 4800)

    private func failure(_ body: () throws -> Void) throws -> ALSAError {
        let error = #expect(throws: ALSAError.self) { try body() }
        return try #require(error)
    }

    @Test func `what can't be opened is told in the library's words`() throws {
        let unknown = try failure { _ = try CapturePCM("nobody-has-such-a-pcm") }
        #expect(unknown.operation == "snd_pcm_open" && unknown.code == ENOENT)
        #expect(unknown.device == "nobody-has-such-a-pcm" && unknown.reason == "No such file or directory")
        let card = try failure { _ = try CapturePCM("hw:CARD=NobodyHasIt,DEV=0") }
        #expect(card.code == ENODEV || card.code == ENOENT, "\(card)")
        #expect(try failure { _ = try SoundCard(number: 31) }.operation == "snd_ctl_open")
        #expect(try failure { _ = try CaptureMixer(card: 31) }.operation == "snd_mixer_attach")
        #expect(try failure { _ = try CardEvents(card: 31) }.operation == "snd_ctl_open")
    }

    @Test func `a wish that is taken is kept, and nothing changes by asking`() throws {
        let pcm = try CapturePCM("null")
        #expect(try pcm.nearest(Self.wish) == Self.wish)
        #expect(try pcm.status().state == .idle)
        let (parameters, hasTimes) = try pcm.configure(Self.wish)
        #expect(parameters == Self.wish && hasTimes)
        #expect(try pcm.status().state == .prepared)
    }

    @Test func `a space is narrowed down without harm to where it comes from`() throws {
        let space = try CapturePCM("null").space()
        let stereo = try space.with(format: .float32).with(channels: 2)
        #expect(try stereo.channels() == 2...2)
        #expect(stereo.takes(format: .float32) && !stereo.takes(format: .signed16))
        #expect(stereo.takes(channels: 2) && !stereo.takes(channels: 1))
        #expect(space.takes(format: .signed16) && space.takes(channels: 1))
        #expect(space.takes(rate: 44100))
        #expect(try space.rates().contains(44100))
    }

    @Test func `what runs is polled, tells times, and is read`() throws {
        let pcm = try CapturePCM("null")
        _ = try pcm.configure(Self.wish)
        try pcm.start()
        var wait = pollfd(fd: pcm.descriptor, events: Int16(POLLIN), revents: 0)
        #expect(poll(&wait, 1, 10_000) == 1)
        let status = try pcm.status()
        #expect(status.state == .running && status.available >= 480)
        var now = timespec()
        clock_gettime(CLOCK_MONOTONIC, &now)
        let seconds = Int64(now.tv_sec) - status.time / 1_000_000_000
        #expect((0...60).contains(seconds), "the time is not of the monotonic clock")
        var memory = [UInt8](repeating: 0, count: 480 * 4)
        #expect(try memory.withUnsafeMutableBytes { try pcm.read(into: $0.baseAddress!, frames: 480) } == 480)
        try pcm.drop()
        #expect(try pcm.status().state == .idle)
        try pcm.restart(from: .suspended)
        #expect(try pcm.status().state == .running)
    }

    @Test func `a card may say of its volume what it likes`() {
        #expect(CaptureMixer.step(-1200...300, over: 0...15) == 100)
        #expect(CaptureMixer.step(0...10, over: 0...100) == 1)
        #expect(CaptureMixer.step(-500...500, over: 3...3) == 1000)
        #expect(CaptureMixer.step(-500...500, over: .min ... .max) == 1)
        #expect(CaptureMixer.step(.min ... .max, over: 0...1) == .max)
    }
}
