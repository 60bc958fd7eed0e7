import CameraBusTesting
import Testing

/// The checker of the kill test sees each kind of broken promise, and none where there is none.
@Suite struct KillCheckerTests {
    private typealias Violation = KillChecker.Violation

    private func hold(
        _ token: String, _ fence: UInt64, _ from: Int64, _ until: Int64, _ devices: [String] = ["cam0"],
        asked: Int64? = nil
    ) -> KillHistory.Hold {
        .init(
            client: token, devices: devices, token: token, fence: fence, asked: asked ?? from - 1, from: from,
            until: until)
    }

    private func commit(
        _ value: Int64, _ sent: Int64, _ answered: Int64?, _ generation: UInt64, _ devices: [String] = ["cam0"]
    ) -> KillHistory.Commit {
        let generations = answered == nil ? [:] : Dictionary(uniqueKeysWithValues: devices.map { ($0, generation) })
        return .init(devices: devices, value: value, sent: sent, answered: answered, generations: generations)
    }

    private func reading(_ value: Int64, _ generation: UInt64, _ from: Int64) -> KillHistory.Reading {
        .init(device: "cam0", value: value, generation: generation, from: from, until: from + 1)
    }

    private func frame(_ number: UInt64, _ sequence: UInt64? = nil, stream: String = "s") -> KillHistory.Frame {
        .init(
            device: "cam0", stream: stream, captureSequence: number, sequence: sequence ?? number,
            time: Int64(number) * 1_000_000_000)
    }

    private func violations(_ make: (inout KillHistory) -> Void) -> [Violation] {
        var history = KillHistory()
        make(&history)
        return KillChecker.violations(history)
    }

    @Test func `a good history has none`() {
        let found = violations {
            $0.holds = [
                hold("a", 1, 10, 20), hold("b", 4, 21, 30, ["cam0", "cam1"]), hold("c", 3, 15, 40, ["cam2"]),
                hold("d", 70, 31, 50), hold("e", 69, 31, 50, ["cam1"], asked: 30),
            ]
            $0.proofs = [
                .init(token: "a", sent: 11, answered: 12, isHeld: true),
                // It was asked while it was held, and let go of before the answer came.
                .init(token: "a", sent: 19, answered: 25, isHeld: false),
            ]
            $0.commits = [
                commit(5, 11, 12, 1), commit(6, 13, nil, 0), commit(7, 15, 16, 4), commit(8, 17, nil, 0),
            ]
            $0.readings = [
                reading(5, 1, 12), reading(6, 2, 14), reading(5, 3, 14), reading(7, 4, 17), reading(8, 5, 18),
            ]
            $0.pairs = [.init(client: "b", values: [3, 3], time: 22)]
            $0.frames = [frame(0), frame(1), frame(2)]
            $0.epochs = ["x", "y"]
        }
        #expect(found == [])
    }

    @Test func `two holders`() {
        let found = violations { $0.holds = [hold("a", 1, 10, 20), hold("b", 2, 19, 30)] }
        #expect(found == [.twoHolders(device: "cam0", fences: [1, 2], nanoseconds: 1)])
        // The one in between doesn't hide the long one.
        let hidden = violations {
            $0.holds = [hold("a", 1, 10, 100), hold("b", 2, 20, 30), hold("c", 3, 50, 60)]
        }
        #expect(hidden.count == 2)
        let batch = violations { $0.holds = [hold("a", 1, 10, 20, ["cam0", "cam1"]), hold("b", 2, 15, 30, ["cam1"])] }
        #expect(batch == [.twoHolders(device: "cam1", fences: [1, 2], nanoseconds: 5)])
    }

    @Test func `a fence that fell, stayed, or was given twice`() {
        let fell = violations { $0.holds = [hold("a", 5, 10, 20), hold("b", 4, 21, 30)] }
        #expect(fell == [.fenceNotRisen(before: 5, after: 4)])
        let twice = violations { $0.holds = [hold("a", 5, 10, 20), hold("b", 5, 10, 20, ["cam1"])] }
        #expect(twice == [.fenceNotRisen(before: 5, after: 5)])
    }

    @Test func `a living holder's lock that is forgotten`() {
        let found = violations {
            $0.holds = [hold("a", 1, 10, 20)]
            $0.proofs = [.init(token: "a", sent: 12, answered: 13, isHeld: false)]
        }
        #expect(found == [.lockForgotten(token: "a", fence: 1)])
    }

    @Test func `a generation that fell back, or stands for two values`() {
        #expect(
            violations { $0.commits = [commit(1, 10, 11, 2), commit(2, 12, 13, 2)] } == [
                .generationNotRisen(device: "cam0", before: 2, after: 2),
                .twoValues(device: "cam0", generation: 2, values: [1, 2]),
            ])
    }

    @Test func `what was acknowledged and is not there`() {
        let older = violations {
            $0.commits = [commit(1, 10, 11, 1), commit(2, 12, 13, 2)]
            $0.readings = [reading(1, 1, 14)]
        }
        #expect(older == [.commitLost(device: "cam0", acknowledged: 2, seen: 1)])
        let wrong = violations {
            $0.commits = [commit(1, 10, 11, 1), commit(2, 12, 13, 2)]
            $0.readings = [reading(1, 2, 14)]
        }
        #expect(wrong == [.wrongValue(device: "cam0", value: 1, expected: [2])])
        // Taken back though it had been acknowledged: the generation has risen, the value is the old one.
        let takenBack = violations {
            $0.commits = [commit(1, 10, 11, 1), commit(2, 12, 13, 2)]
            $0.readings = [reading(1, 3, 14)]
        }
        #expect(takenBack == [.wrongValue(device: "cam0", value: 1, expected: [2])])
    }

    @Test func `a batch that is half made`() {
        let found = violations { $0.pairs = [.init(client: "a", values: [1, 2], time: 5)] }
        #expect(found == [.halfBatch(client: "a", values: [1, 2])])
    }

    @Test func `a wait in vain`() {
        let found = violations {
            $0.vainWaits = [.init(client: "a", devices: ["cam0"], asked: 0, answered: 10_000_000_000)]
        }
        #expect(found == [.starved(client: "a", devices: ["cam0"], milliseconds: 10_000)])
    }

    @Test func `a frame that is lost, and a stream that breaks`() {
        #expect(
            violations { $0.frames = [frame(0), frame(2, 1)] } == [
                .frameLost(device: "cam0", after: 0, next: 2, isTaken: false, pause: 2_000_000_000)
            ])
        #expect(
            violations { $0.frames = [frame(0), frame(2)] } == [
                .frameLost(device: "cam0", after: 0, next: 2, isTaken: true, pause: 2_000_000_000)
            ])
        #expect(
            violations { $0.frames = [frame(4), frame(0, stream: "t")] } == [.streamBroken(device: "cam0", after: 4)])
    }

    @Test func `a frame that is lost when the machine stands still`() {
        var history = KillHistory()
        history.frames = [frame(0), frame(2, 1), frame(4, 2), frame(0, stream: "t")]
        history.stalls = [
            .init(from: 500_000_000, until: 600_000_000), .init(from: 3_000_000_000, until: 3_010_000_000),
        ]
        #expect(KillChecker.excusedLosses(history) == 1)
        #expect(
            KillChecker.violations(history) == [
                .frameLost(device: "cam0", after: 2, next: 4, isTaken: false, pause: 2_000_000_000),
                .streamBroken(device: "cam0", after: 4),
            ])
    }

    @Test func `an epoch that comes again, and what nobody expected`() {
        let found = violations {
            $0.epochs = ["x", "y", "x"]
            $0.surprises = ["?"]
        }
        #expect(found == [.epochAgain("x"), .surprise("?")])
    }
}
