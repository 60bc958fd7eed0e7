import CameraBusTesting
import CaptureCore
import CaptureSources
import Foundation
import Glibc
import LinuxIO
import Testing

extension SoundCardTests {
    /// Microphones of the kernel's: loops of snd-aloop, whose second PCM gives back what is played on the first, and
    /// snd-dummy, which has a mixer. arecord, aplay and amixer judge.
    @Suite struct Microphones {
        private let scratch: TemporaryDirectory

        init() throws { scratch = try TemporaryDirectory() }

        // MARK: Helpers

        /// The microphone of that card and PCM.
        private func facts(_ cardID: String, _ pcm: Int) throws -> MicrophoneFacts {
            let found = ALSADiscovery.survey()
            return try #require(
                found.microphones.first { $0.cardID == cardID && $0.index == pcm }, "\(found)")
        }

        /// What is played on the loop comes out of this one.
        private func loop() throws -> ALSAMicrophone {
            ALSAMicrophone(uniqueID: "loop", facts: try facts("Loopback", 1))
        }

        private static let format = SoundLoop.format

        /// Reads until it has all of the loop's noise, or for the limit's time.
        private func record(_ stream: any SoundStream, _ loop: SoundLoop, seconds: Int64) throws -> [UInt8] {
            let deadline = MonotonicClock.now() + seconds * 1_000_000_000
            var recorded: [UInt8] = []
            var hasBegun = false
            let period = UnsafeMutableRawBufferPointer.allocate(byteCount: stream.format.periodBytes, alignment: 16)
            defer { period.deallocate() }
            while MonotonicClock.now() < deadline {
                while let heard = try stream.read(into: period) {
                    #expect(!heard.isDiscontinuous && heard.frames == stream.format.periodFrames)
                    recorded += period
                    if !hasBegun, let begin = loop.begin(in: recorded) {
                        hasBegun = true
                        recorded.removeFirst(begin)
                    }
                    // Before the noise only as much as a part of its first bytes may be in.
                    if !hasBegun { recorded.removeFirst(max(0, recorded.count - SoundLoop.markerBytes)) }
                }
                if hasBegun, recorded.count >= loop.noise.count { return Array(recorded.prefix(loop.noise.count)) }
                var wait = pollfd(fd: stream.descriptor, events: Int16(POLLIN), revents: 0)
                poll(&wait, 1, 1000)
            }
            throw TestingError("only \(recorded.count) bytes came, \(hasBegun ? "of the noise" : "and not the noise")")
        }

        private func run(_ program: String, _ arguments: String...) throws -> String {
            let (output, status) = try KernelTests.run("/usr/bin/\(program)", arguments)
            try #require(status == 0, "\(program) \(arguments): \(output)")
            return output
        }

        private func running(_ program: String, _ arguments: String...) throws -> RunningProgram {
            try RunningProgram(program, arguments, environment: SoundLoop.environment, scratch: scratch)
        }

        // MARK: What there is

        @Test func microphonesAreThoseOfArecord() throws {
            let found = ALSADiscovery.survey()
            #expect(found.unreadable.isEmpty)
            let ours = found.microphones.map {
                "card \($0.card): \($0.cardID) [\($0.cardName)], device \($0.index): [\($0.name)]"
            }
            let theirs = try run("arecord", "-l").split(separator: "\n").compactMap { line -> String? in
                guard let match = line.wholeMatch(of: /(card \d+: .*, device \d+: ).*(\[[^\[\]]*\])/) else {
                    return nil
                }
                return "\(match.1)\(match.2)"
            }
            #expect(ours == theirs && ours.count >= 3)
            for microphone in found.microphones {
                #expect(DeviceNode.exists(microphone.node) && microphone.usb == nil)
                #expect(
                    microphone.device.hasPrefix("/sys/devices/platform/") && microphone.bus.hasPrefix("platform:snd_"))
                #expect(MicrophoneFacts(json: microphone.json) == microphone)
            }
            var claims: [String: CameraIdentities.Claim] = [:]
            let ids = CameraIdentities.assign(found.microphones, claims: &claims)
            #expect(Set(ids).count == ids.count && ids.allSatisfy { !$0.isEmpty })
            #expect(
                CameraIdentities.assign(ALSADiscovery.survey().microphones.reversed(), claims: &claims)
                    == ids.reversed())
        }

        /// Our table against what arecord says that the hardware can do.
        @Test(arguments: [("Loopback", 1, "S16_LE", 48000, 2), ("Dummy", 0, "S16_LE", 44100, 2)])
        func formatsAreThoseOfArecord(
            _ cardID: String, _ pcm: Int, _ format: String, _ rate: Int, _ channels: Int
        ) throws {
            let facts = try facts(cardID, pcm)
            let text = try run(
                "arecord", "-D", facts.pcm, "--dump-hw-params", "-f", format, "-r", "\(rate)", "-c", "\(channels)",
                "-d",
                "1", "/dev/null")
            func line(_ name: String) throws -> String {
                let found = text.split(separator: "\n").first { $0.hasPrefix("\(name):") }
                return try #require(found, "\(text)").dropFirst(name.count + 1).trimmingCharacters(in: .whitespaces)
            }
            func range(_ name: String) throws -> ClosedRange<Int> {
                let numbers = try line(name).matches(of: /\d+/).compactMap { Int($0.output) }
                return try #require(numbers.first)...(try #require(numbers.last))
            }
            let microphone = ALSAMicrophone(uniqueID: "m", facts: facts)
            let description = try microphone.open()
            defer { microphone.close() }
            let names: [SampleFormat: String] = [
                .s16: "S16_LE", .s24: "S24_3LE", .s24in32: "S24_LE", .s32: "S32_LE", .f32: "FLOAT_LE",
            ]
            let theirs = Set(try line("FORMAT").split(separator: " ").map(String.init))
            #expect(
                Set(description.formats.map { names[$0.sampleFormat] ?? "" }) == theirs.intersection(names.values))
            let allChannels = try range("CHANNELS")
            #expect(description.formats.map(\.channels.lowerBound).min() == allChannels.lowerBound)
            #expect(description.formats.map(\.channels.upperBound).max() == allChannels.upperBound)
            let rates = try range("RATE")
            for row in description.formats {
                #expect(row.rates == SoundRates.usual.filter { rates.contains($0) })
                #expect(row.rateRange == rates)
            }
        }

        @Test func whatIsSetIsWhatRuns() throws {
            let microphone = try loop()
            _ = try microphone.open()
            defer { microphone.close() }
            #expect(try microphone.activeFormat() == Self.format)
            let wanted = SoundFormat(sampleFormat: .s32, rate: 44100, channels: 1, periodFrames: 882)
            #expect(try microphone.tryFormat(wanted) == wanted)
            #expect(try microphone.activeFormat() == Self.format)
            #expect(try microphone.setFormat(wanted) == wanted)
            var stream: (any SoundStream)? = try microphone.startCapture()
            #expect(stream?.format == wanted && stream?.timestampSource == .status)
            // The kernel's word for it.
            let state = try String(
                contentsOfFile: "/proc/asound/Loopback/pcm1c/sub0/hw_params", encoding: .utf8)
            for line in ["format: S32_LE", "channels: 1", "rate: 44100 (44100/1)", "period_size: 882"] {
                #expect(state.contains(line), "\(state)")
            }
            #expect(throws: SourceError.self) { _ = try microphone.setFormat(Self.format) }
            stream = nil
            try microphone.stopCapture()
            #expect(try microphone.setFormat(Self.format) == Self.format)
            let tooMuch = try microphone.tryFormat(SoundFormat(sampleFormat: .s24, rate: 1_000_000, channels: 500))
            #expect(tooMuch.rate == 192_000 && tooMuch.channels == 32)
        }

        // MARK: Sound

        /// The same noise through the same loop, as arecord has it and as we have it, byte for byte.
        @Test func samplesAreThoseOfArecord() async throws {
            let loop = try SoundLoop(seconds: 2)
            let theirs = try await loop.heardByArecord()

            let microphone = try self.loop()
            _ = try microphone.open()
            defer { microphone.close() }
            #expect(try microphone.setFormat(Self.format) == Self.format)
            let stream = try microphone.startCapture()
            let aplay = try loop.play()
            let ours = try record(stream, loop, seconds: 60)
            #expect(stream.overruns == 0 && stream.lostFrames == 0)
            #expect(try await aplay.end(by: .after(seconds: 60)).status == 0)
            #expect(theirs.count == loop.noise.count && ours.count == loop.noise.count)
            #expect(KernelTests.isSame(ours, theirs), "what we have heard is not what arecord has")
            #expect(KernelTests.isSame(ours, loop.noise), "what we have heard is not what was played")
        }

        /// Times are of the monotonic clock, and go on as the frames' numbers do.
        @Test func timesFollowTheFrames() throws {
            let microphone = try loop()
            _ = try microphone.open()
            defer { microphone.close() }
            _ = try microphone.setFormat(Self.format)
            let begin = MonotonicClock.now()
            let periods = try read(try microphone.startCapture(), 100)
            let first = try #require(periods.first)
            let last = try #require(periods.last)
            // The driver's clock goes in steps of 4 ms, and the first period is taken after the start.
            #expect(first.firstFrame == 0 && first.monotonicTime > begin - 20_000_000)
            #expect(last.monotonicTime < MonotonicClock.now())
            for (one, next) in zip(periods, periods.dropFirst()) {
                #expect(next.firstFrame == one.firstFrame + 480)
                #expect(abs(next.monotonicTime - one.monotonicTime - 10_000_000) <= 8_000_000)
            }
            #expect(abs(last.monotonicTime - first.monotonicTime - 990_000_000) <= 20_000_000)
        }

        private func drive(_ what: String) throws -> RunningProgram {
            try running("sh", "-c", "echo snd_aloop.0 >/sys/bus/platform/drivers/snd_aloop/\(what)")
        }

        private func read(_ stream: (any SoundStream)?, _ count: Int) throws -> [SoundPeriod] {
            let stream = try #require(stream)
            let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: stream.format.periodBytes, alignment: 16)
            defer { memory.deallocate() }
            let deadline = MonotonicClock.now() + 60_000_000_000
            var periods: [SoundPeriod] = []
            while periods.count < count {
                if let period = try stream.read(into: memory) {
                    periods.append(period)
                    continue
                }
                try #require(MonotonicClock.now() < deadline, "only \(periods.count) periods came")
                var wait = pollfd(fd: stream.descriptor, events: Int16(POLLIN), revents: 0)
                poll(&wait, 1, 1000)
            }
            return periods
        }

        /// What nobody fetches in time is lost: it is counted and told, and the stream goes on in step.
        @Test func overrunsAreCountedAndTold() throws {
            let microphone = try loop()
            _ = try microphone.open()
            defer { microphone.close() }
            _ = try microphone.setFormat(Self.format)
            let stream = try microphone.startCapture()
            let before = try #require(try read(stream, 10).last)
            let timer = try TimerDescriptor()
            timer.arm(at: MonotonicClock.now() + 2_000_000_000)
            var wait = pollfd(fd: timer.rawValue, events: Int16(POLLIN), revents: 0)
            while poll(&wait, 1, -1) < 0 {}
            let status = try String(contentsOfFile: "/proc/asound/Loopback/pcm1c/sub0/status", encoding: .utf8)
            #expect(status.contains("XRUN"), "\(status)")
            let after = try read(stream, 20)
            let first = try #require(after.first)
            #expect(first.isDiscontinuous && stream.overruns == 1)
            #expect(after.dropFirst().allSatisfy { !$0.isDiscontinuous })
            let lost = first.firstFrame - before.firstFrame - 480
            #expect(lost == stream.lostFrames && lost > 48000)
            let distance = Self.format.nanoseconds(frames: Int64(first.firstFrame - before.firstFrame))
            #expect(abs(first.monotonicTime - before.monotonicTime - distance) <= 1_000_000)
            #expect(after.last?.firstFrame == first.firstFrame + 19 * 480)
        }

        // MARK: Beside other programs

        @Test func aMicrophoneThatSomebodyElseHas() async throws {
            // Without a substream that is free.
            let holders = try (0..<2).map { _ in
                try running(
                    "arecord", "-D", "hw:CARD=Loopback,DEV=1", "-q", "-f", "S16_LE", "-r", "48000", "-c", "2", "-t",
                    "raw", "/dev/null")
            }
            try await eventually(by: .after(seconds: 60)) {
                try (0..<2).allSatisfy {
                    try String(contentsOfFile: "/proc/asound/Loopback/pcm1c/sub\($0)/status", encoding: .utf8).contains(
                        "RUNNING")
                }
            }
            let microphone = try loop()
            let error = #expect(throws: SourceError.self) { _ = try microphone.open() }
            #expect(error?.kind == .inUse && error?.operation == "snd_pcm_open")
            #expect(Set(error?.holders.map(\.pid) ?? []) == Set(holders.map(\.process.pid)))
            for holder in holders {
                holder.process.send(SIGTERM)
                _ = try await holder.end(by: .after(seconds: 60))
            }
            _ = try microphone.open()
            microphone.close()
        }

        /// Gain and mute as amixer sees them, and what amixer changes as we are told of it.
        @Test func mixerIsThatOfAmixer() async throws {
            let facts = try facts("Dummy", 0)
            let microphone = ALSAMicrophone(uniqueID: "m", facts: facts)
            let description = try microphone.open()
            defer { microphone.close() }
            let mute = try #require(description.controls.first { $0.name == MicrophoneControl.mute }, "\(description)")
            let element = mute.title
            func isOn() throws -> Bool {
                let text = try run("amixer", "-c", "\(facts.card)", "sget", element)
                return try #require(text.firstMatch(of: /Front Left:.*Capture.*\[(on|off)\]/), "\(text)").1 == "on"
            }
            for isMuted in [true, false, true] {
                try microphone.setControl(MicrophoneControl.mute, to: .boolean(isMuted))
                #expect(try isOn() == !isMuted)
                #expect(try microphone.controlValues()[MicrophoneControl.mute] == .boolean(isMuted))
            }
            let events = try #require(try microphone.events())
            // Both channels at once: the driver tells nobody of a change of one.
            _ = try run("amixer", "-q", "-c", "\(facts.card)", "cset", "name=\(element) Capture Switch", "on,on")
            try await eventually(by: .after(seconds: 60)) {
                while let event = try events.next() {
                    if case .control(let event) = event, event.id == MicrophoneControl.ID.mute, event.mustBeRead {
                        return true
                    }
                }
                return false
            }
            #expect(try microphone.controlValues()[MicrophoneControl.mute] == .boolean(false))
            let gain = try #require(description.controls.first { $0.name == MicrophoneControl.gain }, "\(description)")
            try microphone.setControl(MicrophoneControl.gain, to: .integer(gain.minimum))
            #expect(try microphone.controlValues()[MicrophoneControl.gain] == .integer(gain.minimum))
            try microphone.setControl(MicrophoneControl.gain, to: .integer(gain.maximum))
            let text = try run("amixer", "-c", "\(facts.card)", "sget", gain.title)
            let decibels = try #require(text.firstMatch(of: /Front Left:.*\[(-?[0-9.]+)dB\]/), "\(text)").1
            #expect(Double(decibels).map { Int64(($0 * 100).rounded()) } == gain.maximum)
        }

        // MARK: Coming and going

        /// The loop's driver is taken away while it is recorded from, and comes back.
        @Test func aMicrophoneThatGoesAndComesBack() async throws {
            let microphone = try loop()
            _ = try microphone.open()
            _ = try microphone.setFormat(Self.format)
            var stream: (any SoundStream)? = try microphone.startCapture()
            _ = try read(stream, 3)
            // It takes the device away at once, and is done when nobody has it open any more.
            let unbinding = try drive("unbind")
            let error = #expect(throws: SourceError.self) { _ = try read(stream, 1000) }
            #expect(error?.kind == .disconnected)
            try? microphone.stopCapture()
            microphone.close()
            stream = nil
            #expect(try await unbinding.end(by: .after(seconds: 60)).status == 0)
            #expect(!ALSADiscovery.survey().microphones.contains { $0.cardID == "Loopback" })
            #expect(throws: SourceError.self) { _ = try microphone.open() }
            #expect(try await drive("bind").end(by: .after(seconds: 60)).status == 0)
            _ = try microphone.open()
            #expect(try microphone.setFormat(Self.format) == Self.format)
            #expect(try read(try microphone.startCapture(), 3).count == 3)
            microphone.close()
        }
    }
}
