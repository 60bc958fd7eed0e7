import BusClient
import BusProtocol
import CameraBusTesting
import FrameRing
import Glibc
import JSON
import LinuxIO
import Testing
import ZeroMQ

extension ProcessTests {
    /// Microphones, from their worker to who listens.
    @Suite(.timeLimit(.minutes(5))) struct Sound {
        private func bus() async throws -> BusHarness { try await BusHarness(virtual: 1, microphones: 1) }

        /// So many pieces of sound.
        private func pieces(_ sounds: Sounds, _ count: Int) async throws -> [SoundChunk] {
            var pieces: [SoundChunk] = []
            while pieces.count < count { pieces.append(try await sounds.next()) }
            return pieces
        }

        private func samples(_ chunk: SoundChunk, channel: Int) -> [Double] {
            chunk.payload.withUnsafeBytes { bytes in
                (0..<chunk.header.frames).map { frame in
                    let offset = (frame * chunk.header.channels + channel) * 2
                    return Double(Int16(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: Int16.self)))
                }
            }
        }

        /// How much there is of a frequency (Goertzel), of full scale.
        private func share(_ samples: [Double], of frequency: Double, rate: Double) -> Double {
            let step = 2 * Double.pi * frequency / rate
            var (real, imaginary) = (0.0, 0.0)
            for (index, sample) in samples.enumerated() {
                real += sample * cos(step * Double(index))
                imaginary += sample * sin(step * Double(index))
            }
            return 2 * (real * real + imaginary * imaginary).squareRoot() / Double(samples.count) / 32768
        }

        @Test func `a microphone comes with virtual cameras, after them, and is offered by its medium`() async throws {
            let bus = try await BusHarness(virtual: 1, microphones: nil)
            #expect(try bus.devices() == ["cam0", "mic0"])
            try await bus.wait(for: "state/device/mic0/") { $0?["activeFormat"]?.isNull == false }
            let client = try RawClient(path: bus.directory.commandSocket)
            let list = try client.call("device.list", ["media": "audio"])
            #expect(list["count"] == 1 && list["default"] == "mic0")
            #expect(try client.call("device.list")["default"] == "cam0")
            let device = list["devices"]?[0]
            #expect(device?["uniqueID"] == "virtual-microphone-0" && device?["type"] == "virtual")
            #expect(device?["dataSources"]?.array?.map { $0["id"] } == ["front", "back"])
            #expect(device?["activeFormat"]?["rate"] == 48000 && device?["frameDuration"] == .null)
            try await bus.stop()
        }

        @Test func `sound comes whole and in its order, and is the tone that the microphone hears`() async throws {
            let bus = try await bus()
            let client = try await bus.connect()
            let sounds = try await client.sound("mic0")
            let pieces = try await pieces(sounds, 60)
            let first = pieces[0].header
            #expect(first.sampleFormat == "s16" && first.rate == 48000 && first.channels == 2)
            var next = first.firstFrame
            for (index, piece) in pieces.enumerated() {
                #expect(piece.header.stream == first.stream && piece.lost == 0)
                #expect(piece.header.sequence == first.sequence + UInt64(index) && piece.header.firstFrame == next)
                #expect(piece.payload.count == piece.header.frames * 4)
                // Numbers and times stay in step.
                let expected = first.monotonic + Int64(next - first.firstFrame) * 1_000_000_000 / 48000
                #expect(abs(piece.header.monotonic - expected) < 2_000_000)
                next += UInt64(piece.header.frames)
            }
            // A tick of 20 ms changes little in half a second.
            for (channel, frequency) in [(0, 440.0), (1, 880.0)] {
                let all = pieces.flatMap { samples($0, channel: channel) }
                let tone = share(all, of: frequency, rate: 48000)
                #expect(tone > 0.08 && tone < 0.13, "\(tone)")
                #expect(share(all, of: frequency * 1.3, rate: 48000) < 0.03)
            }
            await client.close()
            try await bus.stop()
        }

        @Test func `it is told ten times a second how loud it is`() async throws {
            let bus = try await bus()
            let client = try await bus.connect()
            let levels = try await client.levels("mic0")
            var last: SoundLevel?
            for _ in 0..<12 {
                let level = try await levels.next()
                #expect(level.average.count == 2 && level.peak.count == 2)
                // The tone has -23 dBFS, and peaks at -20; a tick lifts both.
                for channel in 0..<2 {
                    #expect(level.average[channel] > -24 && level.average[channel] < -8, "\(level)")
                    #expect(level.peak[channel] > -20.5 && level.peak[channel] <= -4, "\(level)")
                }
                if let last {
                    #expect(level.sequence == last.sequence + 1)
                    #expect(abs(level.monotonic - last.monotonic - 100_000_000) < 2_000_000)
                }
                last = level
            }
            _ = try await client.set("mic0", controls: ["mute": true])
            var isSilent = false
            while !isSilent { isSilent = try await levels.next().peak == [SoundLevel.floor, SoundLevel.floor] }
            await client.close()
            try await bus.stop()
        }

        @Test func `a microphone is open only while it has a user`() async throws {
            let bus = try await bus()
            let client = try await bus.connect()
            try await bus.wait(for: "state/device/mic0/") { $0?["isOpen"] == false }
            var sounds: Sounds? = try await client.sound("mic0")
            _ = try await sounds?.next()
            try await bus.wait(for: "state/device/mic0/") { $0?["isStreaming"] == true }
            sounds?.close()
            sounds = nil
            try await bus.wait(for: "state/device/mic0/") { $0?["isStreaming"] == false && $0?["isOpen"] == false }
            await client.close()
            try await bus.stop()
        }

        @Test func `a worker that is killed is started again, and its sound comes again`() async throws {
            let bus = try await bus()
            let client = try await bus.connect()
            let sounds = try await client.sound("mic0")
            let before = try await sounds.next().header.stream
            _ = try await client.set("mic0", controls: ["gain": -600])
            let pid = try #require(try bus.workerPID("mic0"))
            kill(pid, SIGKILL)
            var after = before
            while after == before { after = try await sounds.next().header.stream }
            let device = try await client.device("mic0")
            #expect(device["worker"]?["restarts"] == 1 && device["controls"]?["gain"] == -600)
            await client.close()
            try await bus.stop()
        }

        @Test func `its format is changed under a lock, and by nobody else`() async throws {
            let bus = try await bus()
            let (owner, other) = (try await bus.connect(), try await bus.connect(name: "another"))
            let change: JSONValue = ["device": "mic0", "activeFormat": ["rate": 44100, "channels": 1]]
            let lock = try await owner.lock(["mic0"])
            await #expect(throws: ClientError.self) { try await other.configure([change]) }
            do {
                _ = try await other.set("mic0", controls: ["mute": true])
                Issue.record("another client has changed a locked microphone")
            } catch {
                #expect(error.reason == .deviceBusy)
            }
            let sounds = try await other.sound("mic0")
            #expect(try await sounds.next().header.rate == 48000)
            let answer = try await owner.configure([change], lock: lock.token)
            #expect(answer["applied"]?["mic0"]?["activeFormat"]?["rate"] == 44100)
            var header = try await sounds.next().header
            while header.rate == 48000 { header = try await sounds.next().header }
            #expect(header.rate == 44100 && header.channels == 1 && header.generation == 1)
            await owner.close()
            await other.close()
            try await bus.stop()
        }

        @Test func `a change over a camera and a microphone is made on both or on none`() async throws {
            let bus = try await bus()
            let client = try await bus.connect()
            let lock = try await client.lock(["cam0", "mic0"])
            let camera: JSONValue = ["device": "cam0", "controls": ["brightness": 20]]
            do {
                _ = try await client.configure(
                    [camera, ["device": "mic0", "activeFormat": ["rate": 12345]]], lock: lock.token)
                Issue.record("a rate that there is not was taken")
            } catch {
                #expect(error.reason == .formatUnsupported)
            }
            #expect(try await client.device("cam0")["controls"]?["brightness"] != 20)
            let both = try await client.configure(
                [camera, ["device": "mic0", "controls": ["data_source": "back"]]], lock: lock.token)
            #expect(both["generation"]?["cam0"] == 1 && both["generation"]?["mic0"] == 1)
            #expect(both["applied"]?["mic0"]?["controls"]?["data_source"] == 1)
            await client.close()
            try await bus.stop()
        }

        @Test func `an overrun is counted and published`() async throws {
            let bus = try await bus()
            let client = try await bus.connect()
            let watch = try await client.watch(["event/device/mic0/"])
            let sounds = try await client.sound("mic0")
            _ = try await sounds.next()
            _ = try await client.call("fault.inject", ["device": "mic0", "fault": "stall", "milliseconds": 700])
            var piece = try await sounds.next()
            while piece.header.overruns == 0 { piece = try await sounds.next() }
            #expect(piece.lost > 0 && piece.header.overruns == 1)
            var event = try await watch.next()
            while event.json["event"] != "overrun" { event = try await watch.next() }
            #expect(event.json["overruns"] == 1 && (event.json["lostFrames"]?.integer ?? 0) >= Int64(piece.lost))
            await client.close()
            try await bus.stop()
        }

        @Test func `one that is unplugged says so, and goes on when it is back`() async throws {
            let bus = try await bus()
            let client = try await bus.connect()
            let sounds = try await client.sound("mic0")
            let before = try await sounds.next().header.stream
            _ = try await client.call("fault.inject", ["device": "mic0", "fault": "unplug"])
            try await bus.wait(for: "state/device/mic0/") { $0?["connected"] == false }
            var reason: BusError.Reason?
            while reason == nil {
                do {
                    _ = try await sounds.next()
                } catch {
                    reason = error.reason
                }
            }
            #expect(reason == .deviceDisconnected)
            _ = try await client.call("fault.inject", ["device": "mic0", "fault": "replug"])
            var after: String?
            while after == nil || after == before {
                // It goes on to say why there is none, until there is.
                do { after = try await sounds.next().header.stream } catch { #expect(error.reason != nil) }
            }
            await client.close()
            try await bus.stop()
        }

        private func numbers(_ chunk: SoundChunk) -> [Double] {
            chunk.payload.withUnsafeBytes { bytes in
                (0..<bytes.count / 4).map {
                    let bits = UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: $0 * 4, as: UInt32.self))
                    return Double(Float(bitPattern: bits))
                }
            }
        }

        @Test func `sound is converted to other rates, samples and channels, once for all subscribers`() async throws {
            let bus = try await bus()
            let client = try await bus.connect()
            let sounds = try await client.sound("mic0", "f32:16000x1")
            let native = try await client.sound("mic0")
            let pieces = try await pieces(sounds, 60)
            let first = pieces[0].header
            #expect(first.rendition == "f32:16000x1" && first.sampleFormat == "f32" && first.rate == 16000)
            var next = first.firstFrame
            for (index, piece) in pieces.enumerated() {
                #expect(piece.header.stream == first.stream && piece.lost == 0 && piece.header.channels == 1)
                #expect(piece.header.sequence == first.sequence + UInt64(index) && piece.header.firstFrame == next)
                let expected = first.monotonic + Int64(next - first.firstFrame) * 1_000_000_000 / 16000
                #expect(abs(piece.header.monotonic - expected) < 2_000_000)
                next += UInt64(piece.header.frames)
            }
            // Two channels became one, as their mean: 440 Hz of the one and 880 Hz of the other.
            let all = pieces.flatMap(numbers).map { $0 * 32768 }
            for frequency in [440.0, 880.0] {
                let tone = share(all, of: frequency, rate: 16000)
                #expect(tone > 0.04 && tone < 0.065, "\(tone)")
            }
            #expect(share(all, of: 600, rate: 16000) < 0.015)
            // It goes on as it does for whoever came first.
            let other = try await client.sound("mic0", "f32:16000x1")
            let joined = try await other.next().header
            #expect(joined.stream == first.stream && joined.sequence > first.sequence)
            #expect(try await native.next().header.stream == first.stream)
            await client.close()
            try await bus.stop()
        }

        @Test(arguments: ["f32:16000x1", "f32:44100x1", "f32:96000x1", "f32"])
        func `a tick stands in resampled sound at its second`(_ rendition: String) async throws {
            let bus = try await bus()
            let client = try await bus.connect()
            let sounds = try await client.sound("mic0", rendition)
            // A tick is five times as loud as the tone: the first frame beyond that begins it, within a fraction of its
            // wave. The piece before has to be quiet: a tick may have begun before the first piece, or in a lost one.
            var found: Int64?
            var wasQuiet = false
            while found == nil {
                let piece = try await sounds.next()
                let (header, values) = (piece.header, numbers(piece))
                guard let loud = values.firstIndex(where: { abs($0) > 0.22 }) else {
                    wasQuiet = true
                    continue
                }
                let time = header.monotonic + Int64(loud / header.channels) * 1_000_000_000 / Int64(header.rate)
                let second = (time + 500_000_000) / 1_000_000_000
                if wasQuiet && piece.lost == 0 { found = time - second * 1_000_000_000 }
                wasQuiet = false
            }
            let off = try #require(found)
            // A wave of a tick takes half a millisecond at most.
            #expect(off > -100_000 && off < 700_000, "\(rendition): \(off) ns")
            await client.close()
            try await bus.stop()
        }

        @Test func `what can't be had is refused on its topic`() async throws {
            let bus = try await bus()
            let client = try await bus.connect()
            for (device, rendition, reason) in [
                ("mic0", "s16:1000x1", BusError.Reason.formatUnsupported), ("mic0", "jpeg", .invalidParams),
                ("cam0", "native", .formatUnsupported),
            ] {
                let sounds = try await client.sound(device, rendition)
                do {
                    _ = try await sounds.next()
                    Issue.record("\(device) gives \(rendition)")
                } catch {
                    #expect(error.reason == reason, "\(device) \(rendition)")
                }
            }
            let frames = try await client.frames("mic0")
            do {
                _ = try await frames.next()
                Issue.record("a microphone gives pictures")
            } catch {
                #expect(error.reason == .formatUnsupported)
            }
            await client.close()
            try await bus.stop()
        }

        @Test(.enabled(if: OtherUser.isPossible, "left out: \(OtherUser.obstacle ?? "")"))
        func `without permission nobody hears anything`() async throws {
            let user = OtherUser.first
            let bus = try await BusHarness(virtual: 1, microphones: 1, configuration: OtherUser.configuration)
            // Cameras are allowed, which says nothing of microphones.
            let allowed = try await bus.run("camerabus", ["allow", "\(user.uid)", "video"])
            try #require(allowed.status == 0, "\(allowed)")
            let listener = try bus.start(
                "camerabus", ["sound", "mic0", "--seconds", "0.1", "--json", "--timeout", "60"], as: user)
            try await bus.wait(for: "state/authorization/\(user.uid)/") { $0?["asked"] == ["audio"] }
            #expect(listener.standardOutput.isEmpty)
            // Refused changes are no way in either.
            let change = try await bus.run("camerabus", ["set", "mic0", "mute=true"], as: user)
            #expect(change.status == 1 && change.standardError.contains("unauthorized"), "\(change)")
            let granted = try await bus.run("camerabus", ["allow", "\(user.uid)", "audio"])
            try #require(granted.status == 0, "\(granted)")
            let heard = try await listener.end()
            #expect(heard.status == 0 && heard.standardOutput.contains("\"sampleFormat\":\"s16\""), "\(heard)")
            // Taken back, it stops.
            let again = try bus.start("camerabus", ["sound", "mic0", "--json", "--timeout", "5"], as: user)
            try await eventually { again.standardOutput.contains("\"sequence\"") }
            let denied = try await bus.run("camerabus", ["deny", "\(user.uid)", "audio"])
            try #require(denied.status == 0, "\(denied)")
            let ended = try await again.end()
            #expect(ended.status != 0 && ended.standardError.contains("unauthorized"), "\(ended)")
            try await bus.stop()
        }

        @Test(.enabled(if: OtherUser.isPossible, "left out: \(OtherUser.obstacle ?? "")"))
        func `a reader that lost permission hears nothing new in a ring, and others continue in another`() async throws
        {
            let user = OtherUser.first
            let bus = try await BusHarness(virtual: 1, microphones: 1, configuration: OtherUser.configuration)
            let rings = try RingConnection(bus.directory, "mic0")
            _ = try #require(try rings.next())
            let ring = try #require(rings.ring)
            // Its memory is mapped still, when its connection has ended.
            let script = """
                import array, mmap, os, signal, socket, struct, sys
                signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
                connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                connection.connect(sys.argv[1])
                connection.send(b'{}')
                data, ancillary, _, _ = connection.recvmsg(65536, 64)
                if not ancillary: sys.exit(data.decode())
                memory = mmap.mmap(array.array("i", ancillary[0][2])[0], 4096, prot=mmap.PROT_READ)
                connection.close()
                print("mapped", flush=True)
                while signal.sigwait({signal.SIGUSR1}):
                    count, newest, closed = struct.unpack_from("<III", memory, 448)
                    print(count, closed, memory[48:64].decode(), flush=True)
                """
            func stranger() throws -> RunningProgram {
                try bus.start(OtherUser.python, ["-c", script, bus.directory.ringSocket("mic0")], as: user)
            }
            let early = try await stranger().end()
            #expect(early.status == 1 && early.standardError.contains("unauthorized"), "\(early)")
            let granted = try await bus.run("camerabus", ["allow", "\(user.uid)", "audio"])
            try #require(granted.status == 0, "\(granted)")
            let running = try stranger()
            try await eventually { running.standardOutput == "mapped\n" }
            /// What it sees now: how much was published, why that has ended, and in which ring.
            func look() async throws -> [Substring] {
                let before = running.standardOutput
                running.process.send(SIGUSR1)
                try await eventually { running.standardOutput != before }
                return running.standardOutput.split(separator: "\n").last?.split(separator: " ") ?? []
            }
            #expect(try await look().dropFirst() == ["0", Substring(ring.ring)])
            let denied = try await bus.run("camerabus", ["deny", "\(user.uid)", "audio"])
            try #require(denied.status == 0, "\(denied)")
            try await eventually { try await look()[1] == "1" }
            let last = try await look()
            while rings.ring?.ring == ring.ring { _ = try #require(try rings.next()) }
            #expect(rings.ring?.stream == ring.stream)
            for _ in 0..<10 { _ = try #require(try rings.next()) }
            #expect(try await look() == last)
            try await bus.stop()
        }

        @Test func `sound goes into a WAV file, which is right also when it is interrupted`() async throws {
            let bus = try await bus()
            let path = "\(bus.scratchPath)/a.wav"
            let result = try await bus.run("camerabus", ["sound", "mic0", "--seconds", "0.25", "-o", path])
            #expect(result.status == 0, "\(result)")
            let whole = try File.read(path, limit: 1 << 20)
            #expect(whole.count == 44 + 12000 * 4 && number(whole, at: 40) == 48000 && number(whole, at: 4) == 48036)
            #expect(number(whole, at: 24) == 48000)

            let open = "\(bus.scratchPath)/b.wav"
            let running = try bus.start("camerabus", ["sound", "mic0", "-o", open])
            try await eventually { ((try? File.read(open, limit: 1 << 24).count) ?? 0) > 20_000 }
            running.process.send(SIGINT)
            #expect(try await running.end().ending == .exited(130))
            let cut = try File.read(open, limit: 1 << 24)
            #expect(number(cut, at: 40) == cut.count - 44 && cut.count % 4 == 0)

            let made = "\(bus.scratchPath)/c.wav"
            let other = try await bus.run(
                "camerabus", ["sound", "mic0", "f32:16000x1", "--seconds", "0.5", "-o", made])
            #expect(other.status == 0, "\(other)")
            let wave = try File.read(made, limit: 1 << 20)
            #expect(wave.count == 58 + 8000 * 4 && number(wave, at: 24) == 16000 && number(wave, at: 20) & 0xFFFF == 3)
            #expect(number(wave, at: 4) == wave.count - 8 && number(wave, at: 46) == 8000)
            let probed = try await bus.run(
                "ffprobe",
                [
                    "-v", "warning", "-show_entries", "stream=codec_name,sample_rate,channels,duration_ts", "-of",
                    "csv=p=0", made,
                ])
            #expect(probed.standardOutput == "pcm_f32le,16000,1,8000\n" && probed.standardError.isEmpty, "\(probed)")
            let raw = try await bus.run("camerabus", ["sound", "mic0", "--seconds", "0.1", "-o", "-"])
            #expect(raw.status == 0 && raw.standardOutputBytes.count == 4800 * 4)
            let levels = try await bus.run("camerabus", ["levels", "mic0", "-n", "2"])
            #expect(levels.status == 0 && levels.standardOutput.split(separator: "\n").count == 2, "\(levels)")
            #expect(levels.standardOutput.contains("[####"), "\(levels)")
            try await bus.stop()
        }

        private func number(_ bytes: [UInt8], at offset: Int) -> Int {
            guard bytes.count >= offset + 4 else { return -1 }
            return (0..<4).reduce(0) { $0 | Int(bytes[offset + $1]) << (8 * $1) }
        }
    }
}
